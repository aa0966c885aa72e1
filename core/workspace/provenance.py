"""Where an experience came from, all the way: proposal, run, groups, rollouts, steps, reviewers (DESIGN 3.4)."""

from __future__ import annotations

from core.errors import NotFoundError
from core.experience import Experience, Proposal
from core.record import Record
from core.review import outdated
from core.rollout import Group, GroupStatus, RunStatus, Trajectory
from core.store import Store

GROUPS_SHOWN = 20
"""Groups that are looked up for each proposal; the ids of all are in its evidence."""

ROLLOUTS_SHOWN = 12
"""Example rollouts that are looked up for each proposal."""

EVENTS_SHOWN = 1_000
ANSWER_SHOWN = 200


class Said(Record):
    """What an experience said, from one version up to another."""

    from_version: int
    to_version: int | None = None
    """The version that changed it; None while it is so."""
    state: Experience
    author: str
    """Who published it."""
    message: str
    created_at: str


class Decision(Record):
    """One thing that somebody did to a proposal."""

    at: str
    actor: str
    kind: str
    """`made`, `approved`, `edited`, `rejected`, `deferred`, `undone`, `published`, ..."""
    reason: str = ""
    text: str | None = None
    """The reviewer's own text, where this decision gave one."""


class OfRun(Record):
    """The run that a proposal was drawn from."""

    id: str
    kind: str
    status: RunStatus
    model: str
    endpoint: str
    library_version: int
    created_at: str


class OfGroup(Record):
    """A group that a proposal was drawn from."""

    id: str
    task_id: str
    question: str
    status: GroupStatus
    size: int
    scored: int
    mean: float | None
    """Of the rewards of its scored rollouts."""
    spread: float | None
    """Largest minus smallest reward."""


class OfRollout(Record):
    """An example of a proposal's evidence."""

    id: str
    group_id: str
    task_id: str
    answer: str
    """Its first 200 characters."""
    steps: tuple[str, ...]
    """Tool and outcome of each step: "read_json failed"."""
    reward: float | None
    advantage: float | None
    error: str | None
    model: str
    trajectory: Trajectory | None = None
    """Where whole trajectories were asked for."""


class Origin(Record):
    """A proposal that made or changed the experience, and what stands behind it."""

    proposal: Proposal
    decisions: tuple[Decision, ...] = ()
    """The oldest first."""
    run: OfRun | None = None
    """None where no run suggested it, such as a lesson that a person wrote."""
    groups: tuple[OfGroup, ...] = ()
    rollouts: tuple[OfRollout, ...] = ()
    gone: tuple[str, ...] = ()
    """Ids of groups and rollouts that its evidence names and that are no longer kept."""
    outdated: str = ""
    """That rewards behind it changed since it was drawn; empty where they did not."""


class Provenance(Record):
    """An experience with all that it came from."""

    experience: Experience
    """As it was last."""
    history: tuple[Said, ...]
    """The oldest first."""
    origins: tuple[Origin, ...]
    """The newest first."""


def provenance(store: Store, experience_id: str, *, trajectories: bool = False) -> Provenance:
    """Look up where an experience came from.

    Args:
        store: where.
        experience_id: `E-0007`; a dead one has a provenance, too.
        trajectories: with the messages and steps of the example rollouts.

    Raises:
        NotFoundError: there never was such an experience.
    """
    states = store.versions.history(experience_id)
    history = [_said(store, *state) for state in states]
    ids = dict.fromkeys(state.proposal_id for _, _, state in reversed(states) if state.proposal_id)
    return Provenance(
        experience=states[-1][2],
        history=tuple(history),
        origins=tuple(_origin(store, i, trajectories) for i in ids),
    )


def _said(store: Store, start: int, end: int | None, state: Experience) -> Said:
    version = store.versions.get(start)
    return Said(
        from_version=start,
        to_version=end,
        state=state,
        author=version.author,
        message=version.message,
        created_at=version.created_at,
    )


def _origin(store: Store, proposal_id: str, trajectories: bool) -> Origin:
    proposal = store.proposals.get(proposal_id)
    groups, rollouts, gone = [], [], []
    for group_id in proposal.evidence.group_ids[:GROUPS_SHOWN]:
        try:
            groups.append(_group(store, store.groups.get(group_id, trajectories=False)))
        except NotFoundError:
            gone.append(group_id)
    for rollout_id in proposal.evidence.rollout_ids[:ROLLOUTS_SHOWN]:
        try:
            rollouts.append(_rollout(store, rollout_id, trajectories))
        except NotFoundError:
            gone.append(rollout_id)
    return Origin(
        proposal=proposal,
        decisions=_decisions(store, proposal_id),
        run=_run(store, proposal.run_id) if proposal.run_id else None,
        groups=tuple(groups),
        rollouts=tuple(rollouts),
        gone=tuple(gone),
        outdated=outdated(store, [proposal]).get(proposal_id, ""),
    )


def _decisions(store: Store, proposal_id: str) -> tuple[Decision, ...]:
    events = store.events.newest(EVENTS_SHOWN, subject=proposal_id)
    return tuple(
        Decision(
            at=event.at,
            actor=event.actor,
            kind=event.kind.removeprefix("proposal."),
            reason=str(event.data.get("reason") or ""),
            text=text if isinstance(text := event.data.get("text", event.data.get("edited")), str) else None,
        )
        for event in reversed(events)
    )


def _run(store: Store, run_id: str) -> OfRun:
    run = store.runs.get(run_id)
    return OfRun(
        id=run.id,
        kind=run.kind,
        status=run.status,
        model=run.model,
        endpoint=run.config.endpoint if run.kind == "sampled" else "",
        library_version=run.library_version,
        created_at=run.created_at,
    )


def _group(store: Store, group: Group) -> OfGroup:
    rewards = [r.reward for r in group.rollouts if r.reward is not None]
    task = store.tasks.find(group.task_id)
    return OfGroup(
        id=group.id,
        task_id=group.task_id,
        question=task.question if task else "",
        status=group.status,
        size=len(group.rollouts),
        scored=len(rewards),
        mean=sum(rewards) / len(rewards) if rewards else None,
        spread=max(rewards) - min(rewards) if rewards else None,
    )


def _rollout(store: Store, rollout_id: str, whole: bool) -> OfRollout:
    found = store.groups.rollout(rollout_id)
    return OfRollout(
        id=found.id,
        group_id=found.group_id,
        task_id=found.task_id,
        answer=found.trajectory.answer[:ANSWER_SHOWN],
        steps=tuple(step.told for step in found.trajectory.steps),
        reward=found.reward,
        advantage=found.advantage,
        error=found.error,
        model=found.model,
        trajectory=found.trajectory if whole else None,
    )
