"""What takes a published proposal back: proposals of its own, which are reviewed and published like any other."""

from __future__ import annotations

from core.errors import InputError
from core.experience import Add, Delete, Experience, Modify, Operation, Proposal, targets_of
from core.library import Library
from core.words import normalise


def reversal(proposal: Proposal, before: Library, head: Library) -> list[Proposal]:
    """Proposals that restore what a published one changed, those that give old texts back first.

    An experience that it made is deleted, one that it changed gets its text, kind and domain back. One that it took
    away comes back under a new id, since ids are never used for anything else again (only a rollback revives one).

    Args:
        proposal: a published one.
        before: the version before the one that it was published in.
        head: the newest version.

    Raises:
        InputError: something that it changed was changed again since, or it has no effect any more.
    """
    touched = [e for e in head.experiences.values() if e.proposal_id == proposal.id]
    reverted = [_restored(e, before.experiences.get(e.id)) for e in sorted(touched, key=lambda e: e.id)]
    found = [o for o in reverted if o is not None and not (isinstance(o, Add) and _is_back(o, head))]
    if not found:
        raise InputError(
            f"Nothing of {proposal.id} is left in version {head.version}: it was changed or rolled back since; "
            f"`winnow library show {proposal.experience_id}` tells how."
        )
    found.sort(key=lambda operation: isinstance(operation, Add))
    return [_proposed(proposal, operation, head) for operation in found]


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
