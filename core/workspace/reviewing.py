"""What a reviewer sees beside a proposal: what is said already, who wants to change the same, whether its base moved.

Reading only, and no model is asked: nearness comes from vectors that are stored, or from shared words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.experience import Proposal, targets_of
from core.library import Library
from core.record import Record
from core.review import Decision, Seen, Weighed, outdated, outdated_of, stale, way_out
from core.review.grounds import across, rivals
from core.review.near import NearOne, NearOnes, near
from core.store import Store
from core.store.claims import Claim
from core.store.proposals import QuarantinedItem
from core.store.queue import Order, Place, ProposalQueue, Sieve

__all__ = [
    "Claim",
    "Decision",
    "Dot",
    "NearOne",
    "NearOnes",
    "Order",
    "Place",
    "QuarantinedItem",
    "Reviewing",
    "Seen",
    "Sieve",
    "Weighed",
]


ON_A_PAGE = "lessons can be drawn again on the page of {run}"


class Dot(Record):
    """One rollout of a group: where it stands by its reward."""

    group_id: str
    id: str
    reward: float | None
    advantage: float | None
    broke_off: bool


class Reviewing:
    """Reads for the review of one workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queue = ProposalQueue(store)

    def moved(self, proposals: Sequence[Proposal]) -> dict[str, str]:
        """Why each of some proposals no longer fits the newest library; those that fit are not among them."""
        open_ones = [p for p in proposals if p.status in ("proposed", "deferred", "superseded", "approved")]
        now = self.queue.experiences({i for p in open_ones for i in p.base_texts})
        library = Library.of(now.values(), self._store.versions.head())
        return {p.id: why for p in open_ones if (why := stale(p, library))}

    def outdated(self, proposal: Proposal) -> str:
        """That rewards behind a proposal changed since it was drawn, and what can be done; empty where they did not."""
        found = outdated(self._store, [proposal]).get(proposal.id, "")
        return f"{found} {way_out(proposal, ON_A_PAGE)}".rstrip() if found else ""

    def outdated_among(self, proposals: Sequence[Proposal]) -> dict[str, str]:
        """The same of many, without what can be done; those whose rewards are what they were are not among them."""
        return outdated(self._store, proposals)

    def outdated_of(self, run_id: str) -> list[str]:
        """Proposals of a run, undecided, staged or published, behind which rewards changed since they were drawn."""
        return outdated_of(self._store, run_id)

    def rivals(self, proposal: Proposal) -> list[Proposal]:
        """Other proposals, undecided or staged, that change the same lessons; the staged ones first."""
        if not targets_of(proposal.operation):
            return []
        found = rivals(proposal, self._store.proposals.open())
        return [self._store.proposals.get(one.proposal_id) for one in found if one.shared]

    def across(self, proposal: Proposal) -> str:
        """Of a merge: that it takes lessons of several domains or kinds together; empty where it does not."""
        now = self.queue.experiences(targets_of(proposal.operation))
        return across(proposal, Library.of(now.values(), self._store.versions.head()))

    def dots(self, group_ids: Sequence[str]) -> dict[str, list[Dot]]:
        """The rollouts of some groups by reward, the best first."""
        found: dict[str, list[Dot]] = {}
        for row in self.queue.rollouts_of(group_ids):
            dot = Dot(**{**row, "broke_off": bool(row["broke_off"])})
            found.setdefault(dot.group_id, []).append(dot)
        return found

    def near(self, text: str, *, without: Collection[str] = (), k: int = 3) -> NearOnes:
        """Live lessons that are nearest to a text; they are the reviewer's to judge, similarity only suggests."""
        return near(self._store, text, without=without, k=k)
