"""Audits of a workspace's library: what they suggest becomes proposals, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from core.audits import Embed, Known, Rules, Suggestion, Usage, audit
from core.errors import BusyError, InputError
from core.experience import PENDING, Evidence, Experience, Proposal, targets_of
from core.extraction.wording import opposed
from core.library import Library
from core.record import Record
from core.settings import N_MAX
from core.store import Store
from core.workspace.logged import Logged

if TYPE_CHECKING:
    from core.ports import Embedder

EVERYTHING = 1_000_000
TRIES = 5
"""How often an audit looks anew when the library or its proposals changed while it looked."""

MOST = 1_000_000

UsageOf = Callable[[Library], Usage]
"""Tells when the lessons of a library were used last."""


def usage_of(store: Store) -> UsageOf:
    """When lessons were used last, in epochs of the workspace: its runs came one after another."""

    def used(library: Library) -> Usage:
        uses = store.credits.last_uses()
        before = {run_id: store.runs.epochs_before(run_id) if run_id else 0 for run_id, _, _ in uses.values()}
        last = {experience_id: before[used.run_id] + used.epoch for experience_id, used in uses.items()}
        youngest = max((e.epoch for e in library.experiences.values()), default=0)
        waiting = frozenset(experience_id for experience_id, used in uses.items() if used.waiting)
        return Usage(max(store.runs.epochs_before(), youngest), last, waiting)

    return used


class Audited(Record):
    """What an audit came to."""

    version: int
    """The version that was looked at."""
    lessons: int
    """Live ones in it."""
    n_max: int
    """Live ones that the library may hold."""
    waiting: int
    """Lessons that earlier proposals would delete or merge, and nobody decided on."""
    suggestions: tuple[Suggestion, ...] = ()
    proposal_ids: tuple[str, ...] = ()
    """Of the suggestions, in their order; none of a dry run."""


class Auditing:
    """Looks, and proposes; what is deleted or merged is decided in review."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder], usage: UsageOf | None = None) -> None:
        """An embedder is made where an audit needs one: loading it takes a second, and another may have the role."""
        self._store = store
        self._embedder = embedder
        self._usage = usage or usage_of(store)
        self._capacity = Logged(store, "n_max", N_MAX)

    def audit(self, rules: Rules, actor: str, *, dry_run: bool = False, epoch: int | None = None) -> Audited:
        """Look at the newest version, and propose what the audits suggest, all of it in one transaction.

        Args:
            rules: which audits, and how; the capacity is that of the workspace.
            actor: who asked for it.
            dry_run: only look.
            epoch: the present one, where it is known better.

        Raises:
            ModelUnavailableError: embeddings are needed, and the embedder cannot be had.
            BusyError: the library or its proposals changed each time while it was looked at.
        """
        rules = replace(rules, n_max=self.n_max)
        embed = self._embed()
        for _ in range(TRIES):
            library, known = self._now()
            usage = self._usage(library)
            if epoch is not None:
                usage = replace(usage, epoch=epoch)
            found = audit([*library], known, usage, rules, embed, opposed)
            audited = Audited(
                version=library.version,
                lessons=len(library),
                n_max=rules.n_max,
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

    @property
    def n_max(self) -> int:
        """N_max: live lessons that the library may hold; above it, the capacity audit suggests which go."""
        return int(str(self._capacity.get()))

    def set_n_max(self, number: int, actor: str) -> None:
        """Say how many live lessons the library may hold; the log keeps it, with who said it and when.

        Raises:
            InputError: it is no number from 1 to a million.
        """
        if not 1 <= number <= MOST:
            raise InputError(f"A library may hold 1 to {MOST:,} lessons, not {number:,}.")
        self._capacity.change(number, actor)

    def _now(self) -> tuple[Library, Known]:
        library = self._store.versions.library()
        proposals, _ = self._store.proposals.page([*PENDING, "rejected"], limit=EVERYTHING)
        return library, Known.of(proposals, [*library])

    def _embed(self) -> Embed:
        """By one embedder for the whole audit."""
        embedder = cache(self._embedder)
        return lambda texts: self._store.embeddings.embed(texts, embedder())


def _proposal(suggestion: Suggestion, library: Library) -> Proposal:
    targets: list[Experience] = [library.live(i) for i in targets_of(suggestion.operation)]
    audits = " and ".join(suggestion.audits)
    return Proposal(
        id="",  # the store gives it
        operation=suggestion.operation,
        extractor="audit",
        rationale="\n".join(part for part in (f"Audit: {audits}.", suggestion.rationale) if part),
        evidence=Evidence(sentence=suggestion.sentence),
        base_version=library.version,
        base_texts={e.id: e.text for e in targets},
        confidence=max(e.confidence for e in targets),
    )
