"""One decision on many proposals: looked at first, then made on all of them or on none.

1. `weigh` says of each what would come of it, and changes nothing; it asks what `decide_all` asks.
2. `decide_all` is bound to what was looked at: to the revision of each. What was changed since is refused by name, and
   so is a proposal whose target got another text. Nothing is decided then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from core.errors import ApplyError, BusyError, InputError
from core.experience import Proposal
from core.record import Record
from core.review.deciding import Deciding
from core.review.staging import Stage
from core.roles import needs

Decision = Literal["approve", "reject", "defer", "undo"]


class Seen(NamedTuple):
    """A proposal as somebody looked at it."""

    proposal_id: str
    revision: int | None = None
    """None takes it as it is now."""


class Weighed(Record):
    """What would come of a decision on one proposal."""

    proposal: Proposal
    refused: str = ""
    """Why the decision cannot be made; empty where it can."""

    @property
    def seen(self) -> Seen:
        """What a decision on it is bound to."""
        return Seen(self.proposal.id, self.proposal.revision)


class Bulk(Deciding):
    """What reviewers do with many proposals at once."""

    def weigh(
        self, decision: Decision, seen: Sequence[Seen], actor: str, *, force: bool = False
    ) -> list[Weighed]:
        """What would come of one decision on many proposals, in order; nothing is changed.

        An approval that does not fit what those before it change is refused here, too: approving the fitting ones
        approves no two that contradict each other.

        Raises:
            NotFoundError: there is no such proposal.
        """
        stage = Stage(self._store) if decision == "approve" else None
        twice = _twice(seen)
        return [
            Weighed(
                proposal=self._store.proposals.get(one.proposal_id),
                refused=twice.get(i) or self._refusal(decision, one, actor, stage, force),
            )
            for i, one in enumerate(seen)
        ]

    def _refusal(self, decision: Decision, one: Seen, actor: str, stage: Stage | None, force: bool) -> str:
        try:
            if decision == "undo":
                self._undoable(one.proposal_id, actor, one.revision, force)
                return ""
            proposal, _ = self._looked_at(one.proposal_id, decision, actor, one.revision, force)
            if stage is not None:
                stage.add(proposal)
        except (ApplyError, BusyError, InputError) as e:
            return str(e)
        return ""

    @needs("reviewer")
    def decide_all(
        self,
        decision: Decision,
        seen: Sequence[Seen],
        actor: str,
        *,
        reason: str = "",
        force: bool = False,
    ) -> list[Proposal]:
        """Make one decision on many proposals, in one transaction: on all of them, or on none.

        Args:
            decision: which.
            seen: the proposals, each as it was looked at.
            actor: who decides.
            reason: why; a rejection needs one.
            force: decide although somebody else holds some of them.

        Raises:
            ApplyError: one does not fit, or was changed since it was looked at; the first is named.
            BusyError: somebody else holds one.
            InputError: one is named twice or decided already, there is nothing to undo, or a rejection has no reason.
        """
        if twice := _twice(seen):
            raise InputError(next(iter(twice.values())))
        with self._store.writing():
            if decision == "approve":
                stage = Stage(self._store)
                return [self._approve(stage, i, actor, revision, reason, force) for i, revision in seen]
            if decision == "undo":
                return [self.undo(i, actor, revision=revision, force=force) for i, revision in seen]
            decide = self.reject if decision == "reject" else self.defer
            return [decide(i, reason, actor, revision=revision, force=force) for i, revision in seen]

    @needs("reviewer")
    def approve_all(
        self, proposal_ids: Sequence[str], actor: str, *, reason: str = "", force: bool = False
    ) -> list[Proposal]:
        """Stage several proposals as they are now: all of them, or none; see `decide_all`."""
        return self.decide_all("approve", [Seen(i) for i in proposal_ids], actor, reason=reason, force=force)


def _twice(seen: Sequence[Seen]) -> dict[int, str]:
    """What is wrong with those that were named before, by their place."""
    first: dict[str, int] = {}
    return {
        i: f"{one.proposal_id} is named twice: name it once."
        for i, one in enumerate(seen)
        if first.setdefault(one.proposal_id, i) != i
    }
