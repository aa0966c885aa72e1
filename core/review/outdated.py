"""Whether the rewards behind a proposal are still those that it was drawn from."""

from __future__ import annotations

from collections.abc import Sequence

from core.experience import PENDING, Proposal
from core.store import Store
from core.store.proposals import number_of

AGAIN = ("evidence", "llm")
"""Extractors that can be asked anew: what a person read out of a group is theirs to take back."""
MOST = 100_000
"""Proposals of one run that are looked through."""


def outdated(store: Store, proposals: Sequence[Proposal]) -> dict[str, str]:
    """Says of proposals that rewards of their groups changed since, in a sentence each; others are not among them."""
    since = store.proposals.rewarded_since([p.id for p in proposals])
    return {p.id: _told(since[p.id], len(p.evidence.group_ids)) for p in proposals if p.id in since}


def outdated_of(store: Store, run_id: str) -> list[str]:
    """Proposals of a run that are outdated and stand for something: undecided, staged or published."""
    found, _ = store.proposals.page([*PENDING, "published"], run_id=run_id, limit=MOST)
    return sorted(outdated(store, found), key=number_of)


def _told(changed: int, groups: int) -> str:
    which = f"{changed:,} of its {groups:,} groups" if groups > 1 else "its group"
    return f"The rewards of {which} changed after it was drawn; what is counted here was before."


def way_out(proposal: Proposal, again: str = "`winnow rollouts propose {run}` draws anew") -> str:
    """What can be done about an outdated one; empty where it was decided on for good, and stands for nothing.

    Args:
        proposal: which one.
        again: how lessons are drawn anew, as it is said where this is shown; `{run}` is the id of its run.
    """
    if not proposal.run_id or proposal.extractor not in AGAIN:
        again = ""
    again = again.replace("{run}", proposal.run_id or "")
    match proposal.status:
        case "proposed":
            found = (again, "or reject it" if again else "Reject it if it no longer holds")
        case "deferred" | "approved":
            found = ("Take the decision back or reject it", again and f"then {again}")
        case "published":
            found = (again, "the lesson stays until it is taken out")
        case _:
            return ""
    told = "; ".join(part for part in found if part)
    return f"{told[0].upper()}{told[1:]}."
