"""Audits of a workspace's library: what they suggest becomes proposals, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from core.audits import PENDING, Known, Rules, Suggestion, Usage, audit
from core.errors import BusyError
from core.experience import Evidence, Experience, Proposal, targets_of
from core.extraction.wording import opposed
from core.library import Library
from core.record import Record
from core.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.ports import Embedder

EVERYTHING = 1_000_000
TRIES = 5
"""How often an audit looks anew when the library or its proposals changed while it looked."""


UsageOf = Callable[[Library], Usage]
"""Tells when the lessons of a library were used last."""


def usage_of(store: Store) -> UsageOf:
    """When lessons were used last, in epochs of the workspace: its runs came one after another."""

    def used(library: Library) -> Usage:
        last = {
            experience_id: store.runs.epochs_before(run_id) + epoch
            for experience_id, (run_id, epoch) in store.credits.last_uses().items()
        }
        youngest = max((e.epoch for e in library.experiences.values()), default=0)
        return Usage(epoch=max(store.runs.epochs_before(), youngest), last=last)

    return used


class Audited(Record):
    """What an audit came to."""

    version: int
    """The version that was looked at."""
    lessons: int
    """Live ones in it."""
    waiting: int
    """Lessons that earlier proposals would delete or merge, and nobody decided on."""
    suggestions: tuple[Suggestion, ...] = ()
    proposal_ids: tuple[str, ...] = ()
    """Of the suggestions, in their order; none of a dry run."""


class Auditing:
    """Looks, and proposes; what is deleted or merged is decided in review."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder], usage: UsageOf | None = None) -> None:
        """The embedder is made when it is first needed: loading one takes a second."""
        self._store = store
        self._embedder = cache(embedder)
        self._usage = usage or usage_of(store)

    def audit(self, rules: Rules, actor: str, *, dry_run: bool = False, epoch: int | None = None) -> Audited:
        """Look at the newest version, and propose what the audits suggest, all of it in one transaction.

        Args:
            rules: which audits, and how.
            actor: who asked for it.
            dry_run: only look.
            epoch: the present one, where it is known better.

        Raises:
            ModelUnavailableError: embeddings are needed, and the embedder cannot be had.
            BusyError: the library or its proposals changed each time while it was looked at.
        """
        for _ in range(TRIES):
            library, known = self._now()
            usage = self._usage(library)
            if epoch is not None:
                usage = Usage(epoch, usage.last)
            found = audit([*library], known, usage, rules, self._embed, opposed)
            audited = Audited(
                version=library.version,
                lessons=len(library),
                waiting=len(known.touched),
                suggestions=tuple(found),
            )
            if dry_run or not found:
                return audited
            with (
                self._store.writing()
            ):  # embedding and clustering take their time: nobody is kept out meanwhile
                now, known_now = self._now()
                if (now.version, known_now) == (library.version, known):
                    ids = self._store.proposals.add([_proposal(s, library) for s in found], actor)
                    return audited.model_copy(update={"proposal_ids": tuple(ids)})
        raise BusyError("The library kept changing while it was audited, so nothing was proposed. Try again.")

    def _now(self) -> tuple[Library, Known]:
        library = self._store.versions.library()
        proposals, _ = self._store.proposals.page([*PENDING, "rejected"], limit=EVERYTHING)
        return library, Known.of(proposals, [*library])

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._store.embeddings.embed(texts, self._embedder())


def _proposal(suggestion: Suggestion, library: Library) -> Proposal:
    targets: list[Experience] = [library.live(i) for i in targets_of(suggestion.operation)]
    audits = " and ".join(suggestion.audits)
    return Proposal(
        id="",  # the store gives it
        operation=suggestion.operation,
        extractor="evidence",  # counted, by no model and no person; the rationale names the audit
        rationale="\n".join(part for part in (f"Audit: {audits}.", suggestion.rationale) if part),
        evidence=Evidence(sentence=suggestion.sentence),
        base_version=library.version,
        base_texts={e.id: e.text for e in targets},
        confidence=max(e.confidence for e in targets),
    )
