"""A lesson that a person writes becomes a proposal, like any other: it is never published directly."""

from __future__ import annotations

from core.errors import InputError
from core.experience import OPEN_STATUSES, Experience, Operation, Proposal, targets_of, text_of
from core.library import check_fit
from core.record import Record
from core.store import Store
from core.words import normalise

NEAR_SHOWN = 5
EVERYTHING = 1_000_000


class Written(Record):
    """A proposal that a person made, and what the library says on the subject already."""

    proposal: Proposal
    near: tuple[Experience, ...] = ()
    """Live experiences that share the most telling words with it, the nearest first."""


def propose_by_hand(store: Store, operation: Operation, actor: str, *, rationale: str = "") -> Written:
    """Make a proposal of an operation that a person wrote; it waits for a review.

    Args:
        store: where.
        operation: what to add, change, delete or merge.
        actor: who wrote it.
        rationale: why; shown to the reviewer.

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
            base_version=library.version,
            base_texts={i: library.live(i).text for i in targets_of(operation)},
            epoch=max((e.epoch for e in library), default=0),
        )
        [proposal_id] = store.proposals.add([proposal], actor)
        made = store.proposals.get(proposal_id)
    return Written(proposal=made, near=_near(store, operation))


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


def _near(store: Store, operation: Operation) -> tuple[Experience, ...]:
    text = text_of(operation)
    if text is None:
        return ()
    targets = targets_of(operation)
    found = store.search.like(text, NEAR_SHOWN + len(targets))
    return tuple(e for e in found if e.id not in targets)[:NEAR_SHOWN]
