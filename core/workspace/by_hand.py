"""A lesson that a person writes becomes a proposal, like any other: it is never published directly."""

from __future__ import annotations

from typing import Literal

from core.errors import InputError
from core.experience import START_CONFIDENCE, Evidence, Operation, Proposal, targets_of, text_of
from core.extraction.wording import opposed
from core.library import Library, check_fit
from core.packs.content import A_SECRET, holds_secret, unfit
from core.record import Record
from core.review.staging import idle
from core.store import Store
from core.store.imports import Rejected
from core.words import normalise
from core.workspace.nearest import Comparing

NEAR_SHOWN = 5


class NearLesson(Record):
    """A live experience that is near to a text."""

    id: str
    text: str
    domain: str
    similarity: float
    """Cosine, or the share of common words."""
    alike: bool
    """Whether the two may say the same."""
    opposed: bool
    """Whether they surely say opposite things, by polarity, number or antonym."""


class Written(Record):
    """A proposal that a person made, and what the library says on the subject already."""

    proposal: Proposal
    near: tuple[NearLesson, ...] = ()
    """Whatever the similarity, the nearest first; the person decides."""
    near_by: str = ""
    """The model whose vectors were compared, or "words"; empty where there was nothing to compare."""
    near_note: str = ""
    """Why words were compared, where they were."""
    rejected: str = ""
    """That the same was rejected before, and why, as a sentence; the reviewer is told, too."""


def propose_by_hand(
    store: Store,
    operation: Operation,
    actor: str,
    compare: Comparing,
    *,
    rationale: str = "",
    evidence: Evidence | None = None,
    extractor: Literal["person", "correction"] = "person",
    confidence: float = START_CONFIDENCE,
) -> Written:
    """Make a proposal of an operation that a person wrote; it waits for a review.

    Args:
        store: where.
        operation: what to add, change, delete or merge.
        actor: who wrote it.
        compare: finds what is near in the library.
        rationale: why; shown to the reviewer.
        evidence: the groups and rollouts that made the person write it, if any.
        extractor: what the person did: wrote a lesson, or corrected a rollout.
        confidence: that it starts with.

    Raises:
        ApplyError: it names an experience that is not live, its text is too long, or an experience of the same domain
            says the same already.
        InputError: it changes nothing, an open proposal does the same already, or the text is none that a lesson may
            have.
    """
    _refuse_unfit(operation, rationale)
    with store.writing():
        library = store.versions.library()
        check_fit(operation, library, store.tasks.counts())
        if of := idle(operation, library):
            raise InputError(f"It changes nothing: {of} reads so already. Nothing was proposed.")
        _refuse_again(store, operation)
        before = _rejected(store, operation)
        said = (rationale.strip(), before.sentence if before else "")
        proposal = Proposal(
            id="",  # the store gives it
            operation=operation,
            extractor=extractor,
            rationale="\n".join(part for part in said if part),
            evidence=evidence or Evidence(),
            confidence=confidence,
            base_version=library.version,
            base_texts={i: library.live(i).text for i in targets_of(operation)},
            epoch=max((e.epoch for e in library), default=0),
        )
        [proposal_id] = store.proposals.add([proposal], actor)
        made = store.proposals.get(proposal_id)
    return _with_near(Written(proposal=made, rejected=said[1]), library, compare)


def _refuse_unfit(operation: Operation, rationale: str) -> None:
    if found := unfit(text_of(operation) or ""):
        raise InputError(f"The lesson {found.what}; nothing was proposed. Propose it anew: {found.instead}.")
    if holds_secret([operation.model_dump(), rationale]):
        raise InputError(
            f"What was given with the lesson holds {A_SECRET}; nothing was proposed. Leave it out."
        )


def _refuse_again(store: Store, operation: Operation) -> None:
    if same := store.proposals.same(operation):
        raise InputError(f"{same.id} proposes the same already (it is {same.status}); nothing was added.")


def _rejected(store: Store, operation: Operation) -> Rejected | None:
    """The newest proposal that said the same and was turned down."""
    text = text_of(operation)
    if text is None:
        return None
    return next((r for r in store.imports.rejected() if normalise(r.text) == normalise(text)), None)


def _with_near(written: Written, library: Library, compare: Comparing) -> Written:
    operation = written.proposal.operation
    text, targets = text_of(operation), targets_of(operation)
    if text is None:
        return written
    others = [e for e in library if e.id not in targets]
    found = compare([text], [e.text for e in others], NEAR_SHOWN)
    near = tuple(
        NearLesson(
            id=others[one.place].id,
            text=others[one.place].text,
            domain=others[one.place].domain,
            similarity=round(one.similarity, 3),
            alike=one.similarity >= found.least,
            opposed=opposed(text, others[one.place].text),
        )
        for one in found.near[0]
    )
    return written.model_copy(update={"near": near, "near_by": found.by, "near_note": found.note})
