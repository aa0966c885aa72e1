"""From what the extractors found to proposals in the store: nothing is proposed twice, and nothing vanishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.experience import Extractor, Operation, Proposal, ProposalStatus, targets_of, text_of
from core.extraction.draft import Draft, Joined
from core.library import Library
from core.review import outdated
from core.rollout import Batch, Extraction, Run
from core.store import Store
from core.words import normalise
from core.workspace.drawing import Found

EVERYTHING = 1_000_000

WAITING: tuple[ProposalStatus, ...] = ("proposed", "deferred")
"""Nobody decided on these yet."""


class Saved(NamedTuple):
    """What was written down."""

    ids: list[str]
    """Of the new proposals."""
    made: Extraction
    """What became of the operations."""


def save_proposals(
    store: Store,
    run: Run,
    library: Library,
    found: Found,
    actor: str,
    *,
    batch: Batch | None = None,
    epoch: int = 0,
    again: Sequence[Extractor] = (),
) -> Saved:
    """Write down all that was suggested, in one transaction.

    What is told of the run counts all that was ever drawn from it; its notes are those of the last time.

    Args:
        store: where.
        run: whose rollouts the suggestions were drawn from.
        library: the version that the rollouts were given.
        found: the suggestions.
        actor: who drew them.
        batch: the one that they were drawn from, where the run has a gate: its report is kept, and the run's is the
            sum of all of them. Without one, they are the whole run's.
        epoch: of the run in which the lessons are born; what is kept counts the epochs of earlier runs too.
        again: who was asked, where the lessons of a finished run are drawn anew: what they proposed from rewards that
            are others now, and nobody decided on, makes room.
    """
    with store.writing():
        epoch += store.runs.epochs_before(run.id)
        if again:
            _make_room(store, run, again, actor)
        fresh, repeated = _not_yet_proposed(store, found.drafts, run)
        proposals = [_proposal(d, run, library, "proposed", "", epoch) for d in fresh]
        proposals += [
            _proposal(s.draft, run, library, "superseded", s.reason, epoch) for s in found.superseded
        ]
        ids = store.proposals.add(proposals, actor)
        store.proposals.quarantine(found.outcome.quarantined, actor)
        for joined in [*found.outcome.joined, *(_joined(draft, known.id) for draft, known in repeated)]:
            store.events.append(actor, "proposal.joined", run.id, **joined.model_dump(mode="json"))
        undecided = tuple(sorted({known.id for _, known in repeated if known.status in WAITING}))
        counted = {
            "proposed": len(fresh),
            "joined": found.extraction.joined + len(repeated),
            "waiting_for": undecided,
        }
        made = found.extraction.model_copy(update=counted)
        if batch is not None:
            store.runs.save_batch(run.id, batch.model_copy(update={"extraction": made}))
            drawn = [b.extraction for b in store.runs.batches(run.id) if b.extraction is not None]
            extraction = sum(drawn, Extraction())
        else:
            extraction = _in_all(store.runs.brief(run.id).extraction, made, again)
        store.runs.save_extraction(run.id, extraction)
    return Saved(ids[: len(fresh)], made)


def _in_all(before: Extraction, now: Extraction, again: Sequence[Extractor]) -> Extraction:
    """What became of all operations of a run; groups that a model could not contrast stay so until one is asked."""
    untaught = before.not_contrasted if again and "llm" not in again else now.not_contrasted
    return (before + now).model_copy(update={"notes": now.notes, "not_contrasted": untaught})


def _make_room(store: Store, run: Run, again: Sequence[Extractor], actor: str) -> None:
    """Take out of the queue what was counted under other rewards; what a person said or decided stays as it is."""
    waiting, _ = store.proposals.page(["proposed"], run_id=run.id, limit=EVERYTHING)
    changed = outdated(store, waiting)
    for proposal in waiting:
        if proposal.id in changed and proposal.extractor in again and proposal.edited_text is None:
            gone = {
                "status": "superseded",
                "reason": f"{changed[proposal.id]} Lessons were drawn anew from {run.id}.",
            }
            decided = proposal.model_copy(update=gone)
            store.proposals.decide(decided, proposal.revision, actor, "proposal.set_aside")


def _not_yet_proposed(
    store: Store, drafts: Sequence[Draft], run: Run
) -> tuple[list[Draft], list[tuple[Draft, Proposal]]]:
    """Part the drafts that were not proposed before, word for word, from those that were, with what they repeat.

    A second run finds the same lessons again: what waits or is published is not proposed twice. What was rejected is
    proposed again by another run only, which has evidence of its own. What was counted under other rewards and made
    room for that is no hindrance.
    """
    known, _ = store.proposals.page([*WAITING, "approved", "published"], limit=EVERYTHING)
    own, _ = store.proposals.page(run_id=run.id, limit=EVERYTHING)
    changed = outdated(store, [p for p in own if p.status == "superseded"])
    known += [p for p in own if p.id not in changed]
    there = {_same(p.operation): p for p in reversed(known)}
    fresh = [d for d in drafts if _same(d.operation) not in there]
    return fresh, [(d, there[key]) for d in drafts if (key := _same(d.operation)) in there]


def _same(operation: Operation) -> tuple[str, tuple[str, ...], str, str]:
    """What makes two operations one: the kind, the targets, the normalised text, the domain."""
    text = text_of(operation)
    domain = getattr(operation, "domain", None) or ""
    return operation.op, targets_of(operation), normalise(text) if text else "", domain


def _joined(draft: Draft, into: str) -> Joined:
    return Joined(
        text=draft.text or "",
        into=into,
        reason="it was proposed before, word for word",
        evidence=draft.evidence,
        raw_reply=draft.raw_reply,
        group_ids=draft.group_ids,
    )


def _proposal(
    draft: Draft, run: Run, library: Library, status: ProposalStatus, reason: str, epoch: int
) -> Proposal:
    targets = targets_of(draft.operation)
    return Proposal(
        id="",  # the store gives it
        operation=draft.operation,
        status=status,
        reason=reason,
        extractor=draft.extractor,
        rationale=draft.rationale,
        evidence=draft.evidence.model_copy(update={"group_ids": draft.evidence.group_ids or draft.group_ids}),
        run_id=run.id,
        base_version=library.version,
        base_texts={i: library.experiences[i].text for i in targets if i in library.experiences},
        confidence=draft.confidence,
        learned_on=draft.learned_on,
        epoch=epoch,
        raw_reply=draft.raw_reply,
    )
