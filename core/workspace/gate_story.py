"""What the gate `trial` of a run tried, published and held back, read from the log and told in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from core.record import Record
from core.rollout import Event
from core.store import Store
from core.store.evaluations import GATE_DECIDED, GATE_TRIED
from core.workspace.trial_gate import HELD_BACK, MOST

SHOWN = 5
"""Ids that are named in one sentence."""


class GateTry(Record):
    """Proposals that were tried together after one batch."""

    evaluation: str
    proposals: tuple[str, ...]
    decided: bool = False
    passed: tuple[str, ...] = ()
    version: int | None = None
    """The version that what passed was published as."""
    again: str = ""
    """The evaluation that estimates what was published again."""

    @property
    def told(self) -> str:
        tried = f"Its gate tried {_named(self.proposals)} on trial tasks ({self.evaluation})"
        if not self.decided:
            return f"{tried}, and has not decided yet."
        if not self.passed:
            return f"{tried}: none was shown to help, so nothing was published."
        helped = "all of them" if set(self.passed) == set(self.proposals) else _named(self.passed)
        if self.version is None:
            return f"{tried}: {helped} passed, and could not be published as the library is now."
        again = f", measured again in {self.again}" if self.again else ""
        return f"{tried}: {helped} passed, published as version {self.version}{again}."


class GateHeld(Record):
    """Proposals that were not tried."""

    proposals: tuple[str, ...]
    reason: str

    @property
    def why(self) -> str:
        return self.reason.removeprefix("not tried: ")

    @property
    def told(self) -> str:
        return f"Its gate did not try {_named(self.proposals)}: {self.why}. A person decides."


class GateStory(Record):
    """All that the gate of one run did so far, in its order."""

    steps: tuple[GateTry | GateHeld, ...] = ()
    waiting: int = 0
    """Proposals of the run that nobody decided on."""

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(step.told for step in self.steps)


def gate_story(store: Store, run_id: str) -> GateStory:
    """What the gate of a run did so far; nothing where it has none."""
    events, _ = store.events.page(kind="gate", subject=run_id, limit=MOST)
    decided = {e.data["evaluation"]: e for e in events if e.kind == GATE_DECIDED}
    steps: list[GateTry | GateHeld] = []
    for event in reversed(events):
        if event.kind == GATE_TRIED:
            steps.append(_try(event, decided.get(event.data["evaluation"])))
        elif event.kind == HELD_BACK:
            steps.append(GateHeld(proposals=_ids(event, "proposals"), reason=str(event.data["reason"])))
    _, waiting = store.proposals.page(["proposed", "deferred"], run_id=run_id, limit=1)
    return GateStory(steps=tuple(steps), waiting=waiting)


def why_not_tried(store: Store, run_id: str, proposal_id: str) -> str:
    """Why the gate of a run did not try a proposal of it, in a sentence; empty where it tried it, or never met it."""
    held = (one for one in gate_story(store, run_id).steps if isinstance(one, GateHeld))
    why = next((one.why for one in held if proposal_id in one.proposals), "")
    return f"The gate of {run_id} did not try it: {why}." if why else ""


def _try(event: Event, decided: Event | None) -> GateTry:
    evaluation, proposals = str(event.data["evaluation"]), _ids(event, "proposals")
    if decided is None:
        return GateTry(evaluation=evaluation, proposals=proposals)
    version = decided.data["version"]
    return GateTry(
        evaluation=evaluation,
        proposals=proposals,
        decided=True,
        passed=_ids(decided, "passed"),
        version=version if isinstance(version, int) else None,
        again=str(decided.data.get("fresh") or ""),
    )


def _ids(event: Event, name: str) -> tuple[str, ...]:
    found = event.data.get(name)
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _named(ids: Sequence[str]) -> str:
    """`2 proposals (P-0001, P-0002)`."""
    more = ", ..." if len(ids) > SHOWN else ""
    return f"{len(ids):,} proposal{'s' if len(ids) != 1 else ''} ({', '.join(ids[:SHOWN])}{more})"
