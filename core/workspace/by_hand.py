"""A lesson that a person writes becomes a proposal, like any other: it is never published directly."""

from __future__ import annotations

from core.errors import InputError
from core.experience import OPEN_STATUSES, Evidence, Operation, Proposal, targets_of, text_of
from core.extraction.wording import opposed
from core.library import Library, check_fit
from core.record import Record
from core.store import Store
from core.words import normalise
from core.workspace.nearest import Comparing

NEAR_SHOWN = 5
EVERYTHING = 1_000_000


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


def propose_by_hand(
    store: Store,
    operation: Operation,
    actor: str,
    compare: Comparing,
    *,
    rationale: str = "",
    evidence: Evidence | None = None,
) -> Written:
    """Make a proposal of an operation that a person wrote; it waits for a review.

    Args:
        store: where.
        operation: what to add, change, delete or merge.
        actor: who wrote it.
        compare: finds what is near in the library.
        rationale: why; shown to the reviewer.
        evidence: the groups and rollouts that made the person write it, if any.

    Raises:
        ApplyError: it names an experience that is not live, its text is too long, or an experience of the same domain
            says the same already.
        InputError: an open proposal does the same already.
    """
    with store.writing():
        library = store.versions.library()
        check_fit(operation, library)
        _refuse_again(store, operation)
        proposal = Proposal(
            id="",  # the store gives it
            operation=operation,
            extractor="person",
            rationale=rationale.strip(),
            evidence=evidence or Evidence(),
            base_version=library.version,
            base_texts={i: library.live(i).text for i in targets_of(operation)},
            epoch=max((e.epoch for e in library), default=0),
        )
        [proposal_id] = store.proposals.add([proposal], actor)
        made = store.proposals.get(proposal_id)
    return _with_near(Written(proposal=made), library, compare)


def _refuse_again(store: Store, operation: Operation) -> None:
    known, _ = store.proposals.page([*OPEN_STATUSES, "approved"], limit=EVERYTHING)
    same = next((p for p in known if _what(p.effective) == _what(operation)), None)
    if same is not None:
        raise InputError(f"{same.id} proposes the same already (it is {same.status}); nothing was added.")


def _what(operation: Operation) -> tuple[object, ...]:
    text = text_of(operation)
    more = (getattr(operation, "kind", None), getattr(operation, "domain", None))
    kept = (more[1],) if operation.op == "add" else more
    return operation.op, targets_of(operation), normalise(text) if text else "", kept


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
