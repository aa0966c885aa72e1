"""The extractor that needs no model: from the evidence of a batch to drafts of lessons (DESIGN 2.5)."""

from __future__ import annotations

from collections.abc import Sequence

from core.evidence import Seen
from core.experience import GENERAL, Add, Experience
from core.extraction.draft import Draft, Joined, Outcome
from core.extraction.search import Search
from core.words import normalise

MAX_PER_DOMAIN = 4
"""Drafts of new or changed lessons of one domain; what more was found is set aside, and drawn from the next batch."""


def propose(
    seen: Seen,
    library: Sequence[Experience],
    *,
    run_id: str,
    seed: int,
    epoch: int = 0,
    max_per_domain: int = MAX_PER_DOMAIN,
) -> Outcome:
    """Draft lessons from what winners and losers of the informative groups did differently.

    Works on all groups that were added so far, in whatever order and from whatever thread; groups that are added
    meanwhile count the next time.

    Args:
        seen: the groups, counted.
        library: live experiences of the version that the rollouts were made with.
        run_id: goes with everything that is set aside.
        seed: of the permutation test; with `epoch` and equal groups the outcome is equal.
        epoch: epoch of the run.
        max_per_domain: at most so many drafts of new or changed lessons for one domain.

    Returns:
        Drafts, operations joined with what is already there, and what fell out, with reasons.
    """
    counts = seen.counts()
    acting = {g.domain for g in counts.groups.values() if g.rows and g.acted} - {GENERAL}
    shared = len(acting) > 1  # habits that belong to no domain are then looked for in all of them together
    outcome = Outcome()
    for domain in [*(d for d in counts.domains if d != GENERAL), GENERAL]:
        own = {domain} if domain != GENERAL else {GENERAL, *acting}
        if domain == GENERAL and not shared and GENERAL not in counts.domains:
            continue
        search = Search(
            domain=domain,
            matters=counts.asked(own),
            contrast=counts.contrast(own, seed=(abs(seed), epoch)),
            live=[e for e in library if e.status == "live" and e.domain == domain],
            answers=counts.answers,
            run_id=run_id,
            seed=(abs(seed), epoch),
            general=None if not shared else domain == GENERAL,
        )
        outcome += search.run(max_per_domain)
    return _united(outcome)


def _united(outcome: Outcome) -> Outcome:
    """Lessons of several domains in the very same words become one for all domains, with their evidence."""
    drafts: dict[str, Draft] = {}
    joined = list(outcome.joined)
    for i, draft in enumerate(outcome.drafts):
        key = normalise(draft.text) if draft.text and isinstance(draft.operation, Add) else f"#{i}"
        if key not in drafts:
            drafts[key] = draft
            continue
        first = drafts[key]
        a, b = first.evidence, draft.evidence
        evidence = a.model_copy(
            update={
                "findings": a.findings + b.findings,
                "group_ids": tuple(dict.fromkeys(a.group_ids + b.group_ids)),
                "rollout_ids": tuple(dict.fromkeys(a.rollout_ids + b.rollout_ids)),
            }
        )
        drafts[key] = first.model_copy(
            update={
                "operation": first.operation.model_copy(update={"domain": GENERAL}),
                "evidence": evidence,
                "rationale": f"{first.rationale} In another domain: {draft.rationale}",
                "group_ids": evidence.group_ids,
            }
        )
        text = draft.text or ""
        why = "the same text as the draft of another domain"
        joined.append(Joined(text=text, into=text, reason=why, evidence=b, group_ids=draft.group_ids))
    return outcome.model_copy(update={"drafts": tuple(drafts.values()), "joined": tuple(joined)})
