"""Reviewers beside each other: who is looking at which proposal.

1. `next` gives a reviewer a proposal that nobody else holds, under a lease: what they hold already, else the one
   with the strongest evidence.
2. A lease ends by itself; `renew` is its heartbeat. It also ends with a decision.
3. Somebody else's proposal can be claimed by its id only, and only by insisting (`force`); so can a decision on it be
   made. Both are in the log.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from core.errors import BusyError, InputError
from core.experience import Delete, Proposal
from core.review.staging import UNDECIDED
from core.roles import LOCAL, Role, needs
from core.store import Store
from core.store.claims import Claim

LEASE_MINUTES = 15.0
MOST_MINUTES = 24 * 60.0


Verb = Literal["claim", "approve", "edit", "rebase", "reject", "defer"]
"""What can be done with a proposal that is not decided yet."""


class Claiming:
    """Leases on proposals."""

    def __init__(self, store: Store, role: Role = LOCAL) -> None:
        """`role` is that of whoever calls: what it may not do, it is refused."""
        self._store = store
        self.role: Role = role

    @needs("reviewer")
    def next(
        self,
        actor: str,
        *,
        minutes: float = LEASE_MINUTES,
        domain: str = "",
        run_id: str | None = None,
        skip: Collection[str] = (),
    ) -> Proposal | None:
        """Claim the next proposal for a reviewer; None when nothing is left that nobody else holds.

        Deferred, superseded and quarantined ones are not given: they are asked for by their ids.

        Args:
            actor: the reviewer.
            minutes: how long nobody else gets it.
            domain: only of this one; empty takes all.
            run_id: only of this run.
            skip: none of these; what the reviewer holds of them is released.
        """
        with self._store.writing():
            now = self._store.claims.clock()
            for proposal_id in skip:
                self.release(proposal_id, actor)
            found = self._store.claims.waiting(actor, now, domain=domain, run_id=run_id, skip=skip)
            if found is None:
                return None
            self._take(found, actor, minutes, now)
            return self._store.proposals.get(found)

    @needs("reviewer")
    def claim(
        self, proposal_id: str, actor: str, *, minutes: float = LEASE_MINUTES, force: bool = False
    ) -> Claim:
        """Claim one proposal by its id.

        Raises:
            InputError: it is decided already.
            BusyError: somebody else holds it; the message says who, and until when.
        """
        with self._store.writing():
            self._undecided(proposal_id, "claim")
            if over := self._refuse_held(proposal_id, actor, force):
                self._store.events.append(actor, "claim.taken_over", proposal_id, holder=over)
            return self._take(proposal_id, actor, minutes, self._store.claims.clock())

    @needs("reviewer")
    def renew(self, proposal_id: str, actor: str, *, minutes: float = LEASE_MINUTES) -> Claim:
        """Heartbeat: hold a proposal for so long from now on; one that ran out is taken again if it is still free.

        Raises:
            InputError: it is decided already.
            BusyError: it ran out, and somebody else has it now.
        """
        return self.claim(proposal_id, actor, minutes=minutes)

    @needs("reviewer")
    def release(self, proposal_id: str, actor: str) -> bool:
        """Give a proposal back; False where the reviewer did not hold it."""
        with self._store.writing():
            held = self.holder(proposal_id)
            if held is None or held.holder != actor:
                return False
            self._store.claims.end(proposal_id, actor)
            return True

    def holder(self, proposal_id: str) -> Claim | None:
        """Who holds a proposal now, and until when; None where it is free."""
        return self._store.claims.of(proposal_id, self._store.claims.clock())

    def claims(self) -> list[Claim]:
        """Everything that is held now."""
        return self._store.claims.all(self._store.claims.clock())

    def _take(self, proposal_id: str, actor: str, minutes: float, now: str) -> Claim:
        if not 0 < minutes <= MOST_MINUTES:
            raise InputError(f"A claim lasts more than 0 and at most {MOST_MINUTES:.0f} minutes.")
        return self._store.claims.take(proposal_id, actor, minutes, now)

    def _refuse_held(self, proposal_id: str, actor: str, force: bool) -> str | None:
        """Refuse what somebody else is looking at; gives whose claim was overridden."""
        held = self.holder(proposal_id)
        if held is None or held.holder == actor:
            return None
        if not force:
            raise BusyError(
                f"{held.holder} holds {proposal_id} until {held.until} and is looking at it. Take another one "
                "(winnow review next), wait, or insist with --force."
            )
        return held.holder

    def _undecided(self, proposal_id: str, verb: Verb) -> Proposal:
        """A proposal that is not decided yet; one in quarantine may be edited, which brings it back.

        Raises:
            InputError: it is decided already; the sentence says how to go on.
        """
        proposal = self._store.proposals.get(proposal_id)
        if proposal.status in UNDECIDED or (proposal.status == "quarantined" and verb == "edit"):
            return proposal
        how = f"by {proposal.decided_by}" if proposal.decided_by else "already"
        if proposal.status == "quarantined":  # whoever decided on it before did not do that
            how = f"({proposal.reason})"
        raise InputError(f"Cannot {verb} {proposal.id}: it was {proposal.status} {how}. {_way_on(proposal)}")


def _way_on(proposal: Proposal) -> str:
    match proposal.status:
        case "published":
            return f"`winnow review revert {proposal.id}` proposes what takes it back."
        case "quarantined":
            edit = f", `winnow review edit {proposal.id}` with a text of your own"
            return (
                f"`winnow review undo {proposal.id}` brings it back as it was"
                f"{'' if isinstance(proposal.operation, Delete) else edit}."
            )
        case _:
            return f"Undo that first: `winnow review undo {proposal.id}`."
