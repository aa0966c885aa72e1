"""What takes a published proposal back: proposals of its own, which are reviewed and published like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.errors import InputError
from core.experience import Add, Delete, Evidence, Experience, Modify, Operation, Proposal, targets_of
from core.library import Library
from core.words import normalise

MadeBy = Callable[[str], Sequence[Proposal]]
"""The proposals that made an experience what it is, the newest first."""


def reversal(proposal: Proposal, before: Library, head: Library, made_by: MadeBy) -> list[Proposal]:
    """Proposals that restore what a published one changed, those that give old texts back first.

    An experience that it made is deleted, one that it changed gets its text, kind and domain back. One that it took
    away comes back under a new id, since ids are never used for anything else again (only a rollback revives one).

    Args:
        proposal: a published one.
        before: the version before the one that it was published in.
        head: the newest version.
        made_by: tells what stands behind an experience that comes back: it was learned from the same tasks as ever.

    Raises:
        InputError: something that it changed was changed again since, or it has no effect any more.
    """
    touched = [e for e in head.experiences.values() if e.proposal_id == proposal.id]
    reverted = [
        (_restored(e, before.experiences.get(e.id)), e.id) for e in sorted(touched, key=lambda e: e.id)
    ]
    found = [(o, i) for o, i in reverted if o is not None and not (isinstance(o, Add) and _is_back(o, head))]
    if not found:
        raise InputError(
            f"Nothing of {proposal.id} is left in version {head.version}: it was changed or rolled back since; "
            f"`winnow library show {proposal.experience_id}` tells how."
        )
    found.sort(key=lambda one: isinstance(one[0], Add))
    made = [(_proposed(proposal, operation, head), of) for operation, of in found]
    return [
        _as_it_was(one, before.experiences[of], made_by(of)) if isinstance(one.operation, Add) else one
        for one, of in made
    ]


def _as_it_was(proposal: Proposal, lost: Experience, made_by: Sequence[Proposal]) -> Proposal:
    """The proposal of a lesson that comes back, with its evidence, model, confidence and age."""
    behind = [p.evidence for p in made_by if not isinstance(p.operation, Delete)]
    counted = next((e for e in behind if e.findings), Evidence())
    evidence = counted.model_copy(
        update={
            "group_ids": tuple(dict.fromkeys(i for e in behind for i in e.group_ids)),
            "rollout_ids": tuple(dict.fromkeys(i for e in behind for i in e.rollout_ids)),
            "steps": {k: v for e in reversed(behind) for k, v in e.steps.items()},
        }
    )
    kept = {"learned_on": lost.learned_on, "confidence": lost.confidence, "epoch": lost.epoch}
    return proposal.model_copy(update={"evidence": evidence, **kept})


def _restored(now: Experience, before: Experience | None) -> Operation | None:
    was_live = before is not None and before.status == "live"
    if now.status == "live":
        if before is None or not was_live:
            return Delete(experience_id=now.id)
        if (now.text, now.kind, now.domain) == (before.text, before.kind, before.domain):
            return None
        return Modify(experience_id=now.id, text=before.text, kind=before.kind, domain=before.domain)
    if before is None or not was_live:
        return None
    return Add(text=before.text, kind=before.kind, domain=before.domain)


def _is_back(add: Add, head: Library) -> bool:
    """Whether a live lesson says already what would be brought back."""
    return any(e.domain == add.domain and normalise(e.text) == normalise(add.text) for e in head)


def _proposed(proposal: Proposal, operation: Operation, head: Library) -> Proposal:
    return Proposal(
        id="",  # the store gives it
        operation=operation,
        extractor="person",
        rationale=f"Takes back {proposal.id}, which was published in version {proposal.published_in}.",
        evidence=proposal.evidence,
        base_version=head.version,
        base_texts={i: head.experiences[i].text for i in targets_of(operation)},
        learned_on=proposal.learned_on,
    )
