"""What a person says of a rollout: a correction is a lesson, and it waits for a review like any other.

1. Accepting and rejecting an outcome is `Rescoring.accept`: it may change rewards.
2. A *correction* says what should have been done, in at most 32 words. It becomes a proposal that points at the
   rollout, and at the step if one is named, and starts with confidence 0.8 (DESIGN 2.7).
3. It is taken back by whoever wrote it, as long as nobody decided on it: a rejection that can be undone in the review.
"""

from __future__ import annotations

from core.errors import InputError
from core.experience import CORRECTION_CONFIDENCE, Add, Evidence, Proposal
from core.review import Review
from core.rollout import Rollout, Step
from core.store import Store
from core.workspace.by_hand import Written, propose_by_hand
from core.workspace.nearest import Comparing
from core.workspace.teaching import check_teaches

TAKEN_BACK = "taken back by who wrote it"
LOOKED = 200
"""Proposals on a group that are looked through for corrections."""


class Correcting:
    """Corrections of the rollouts of one workspace."""

    def __init__(self, store: Store, compare: Comparing) -> None:
        self._store = store
        self._compare = compare

    def correct(
        self, rollout_id: str, lesson: Add, actor: str, *, step: int | None = None, note: str = ""
    ) -> Written:
        """Propose what should have been done.

        Args:
            rollout_id: what is corrected.
            lesson: what it should teach.
            actor: who says so.
            step: number of the step that it is about, from 1; None means the whole rollout.
            note: anything else, for the reviewer.

        Raises:
            NotFoundError: there is no such rollout.
            ApplyError: the text is too long, or a lesson of the same domain says the same already.
            InputError: there is no such step, an open proposal does the same already, or its task may not teach.
        """
        rollout = self._store.groups.rollout(rollout_id)
        check_teaches(self._store, rollout.task_id)
        told = _told(rollout, step)
        return propose_by_hand(
            self._store,
            lesson,
            actor,
            self._compare,
            rationale=f"{note.strip()}\n{told}" if note.strip() else told,
            evidence=Evidence(
                group_ids=(rollout.group_id,),
                rollout_ids=(rollout_id,),
                steps={rollout_id: step} if step else {},
            ),
            extractor="correction",
            confidence=CORRECTION_CONFIDENCE,
        )

    def take_back(self, proposal_id: str, actor: str, *, revision: int | None = None) -> Proposal:
        """Take a correction back before anybody decides on it.

        Raises:
            InputError: it is none, somebody else wrote it, or it is decided already.
            ApplyError: somebody decided meanwhile.
            BusyError: somebody else looks at it.
        """
        proposal = self._store.proposals.get(proposal_id)
        if proposal.extractor != "correction":
            raise InputError(f"{proposal_id} is no correction; decide on it in the review.")
        if (author := self.author(proposal_id)) != actor:
            raise InputError(f"{author} wrote {proposal_id}; decide on it in the review.")
        return Review(self._store).reject(proposal_id, TAKEN_BACK, actor, revision=revision)

    def of(self, rollout_id: str) -> list[Proposal]:
        """The corrections of a rollout that were not taken back, the newest first."""
        group_id = self._store.figures.group_of(rollout_id)
        ids, _ = self._store.figures.proposals_on(group_id, "", LOOKED, extractor="correction")
        found = [self._store.proposals.get(i) for i in ids]
        mine = [
            p
            for p in found
            if rollout_id in p.evidence.rollout_ids
            and not (p.status == "rejected" and p.reason == TAKEN_BACK)
        ]
        return sorted(mine, key=lambda p: int(p.id.rpartition("-")[2]), reverse=True)

    def author(self, proposal_id: str) -> str:
        """Who wrote it."""
        made, _ = self._store.events.page(kind="proposal.made", subject=proposal_id, limit=1)
        return made[0].actor if made else ""


def _told(rollout: Rollout, number: int | None) -> str:
    """Which rollout and step it is about, for the reviewer."""
    steps = rollout.trajectory.steps
    if number is None:
        return f"A correction of {rollout.id}."
    if not 1 <= number <= len(steps):
        count = f"steps 1 to {len(steps)}" if steps else "no steps"
        raise InputError(f"{rollout.id} has {count}; there is no step {number}. Nothing was proposed.")
    return f"A correction of {rollout.id} at step {number}, {_how(steps[number - 1])}."


def _how(step: Step) -> str:
    failed = step.success is False or step.error
    how = "failed" if failed else "worked" if step.success else "has no recorded result"
    return f"{' '.join(step.tool.split())[:60]}, which {how}"
