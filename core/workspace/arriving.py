"""What comes in: libraries of others as proposals, and what became of lessons that were shipped.

Nothing of it is trusted: a lesson waits for a person like any other proposal, with a confidence of ours, and a usage
log speaks only of lessons that this workspace published with that very text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from core.errors import PackError
from core.experience import GENERAL, MAX_WORDS, Add, Proposal, same_domain
from core.extraction.wording import opposed
from core.importers.source import MAX_RAW, bounded
from core.packs import Credit, read_library, read_usage
from core.packs.content import kept_name, unfit
from core.packs.foreign import Aside, ForeignLesson, ForeignLibrary, domain_or
from core.packs.usage_log import UsageEntry
from core.record import Record, content_hash
from core.store import Store
from core.store.imports import Import, ImportedLesson, Rejected
from core.words import count_words, normalise
from core.workspace.crediting import Crediting, Earned, Texts
from core.workspace.nearest import Comparing

NEAR = 3
"""Of a lesson, so many near ones are named."""


class NewLesson(Record):
    """A lesson that became a proposal."""

    proposal_id: str
    """Empty where nothing was written (a dry run)."""
    place: str
    their_id: str
    text: str
    words: int
    too_long: bool
    """It has more than 32 words: it must be edited before it can be approved."""
    near: tuple[str, ...] = ()
    """Experiences and proposals that may say the same, the nearest first; the reviewer decides."""
    opposed: tuple[str, ...] = ()
    """Those of them that surely say the opposite, by polarity, number or antonym."""
    rejected: str | None = None
    """A proposal that said the same and was turned down."""


class JoinedLesson(Record):
    """A lesson that says, once normalised, what is there already."""

    into: str
    """An experience, a proposal, or (in a dry run) the place of an earlier lesson of the file."""
    place: str
    their_id: str
    text: str


class Arrived(Record):
    """What came of importing a library: lessons = new + joined, and nothing else was in the file but what is aside."""

    form: str
    source: str
    sha256: str
    name: str
    version: int | None
    lessons: int
    new: tuple[NewLesson, ...] = ()
    joined: tuple[JoinedLesson, ...] = ()
    aside: tuple[Aside, ...] = ()
    notes: tuple[str, ...] = ()
    near_by: str = ""
    """The model whose vectors told what is near, or "words"; empty where there was nothing to compare with."""
    before: Import | None = None
    """The import of the same file before, where there was one: then nothing was changed."""
    dry_run: bool = False


class UsageArrived(Record):
    """What came of importing a usage log: lines = new + known + aside."""

    source: str
    new: int
    known: int
    """Entries that were there already."""
    aside: tuple[Aside, ...]
    credited: int
    """New entries that tell something about a lesson of this workspace."""
    unknown: dict[str, int]
    """Ids that this workspace does not know, or knows with no such text: how many new entries name each."""
    earned: tuple[Earned, ...] = ()
    """What now waits for the lessons that the new entries tell of; none of a dry run."""
    dry_run: bool = False


class _Looked(NamedTuple):
    """What was there when a file came in, and what of it is near to the lessons of the file."""

    mark: int
    there: list[tuple[str, str, str]]
    """(id, text, domain)."""
    near: dict[str, list[tuple[str, str]]]
    """(id, text) of what may say the same, by the text of the lesson."""
    by: str
    note: str
    """Why it was not found by vectors."""


class Arriving:
    """Imports into one workspace."""

    def __init__(self, store: Store, credit: Credit, compare: Comparing) -> None:
        """
        Args:
            store: of the workspace.
            credit: who credits lessons with what a usage log says.
            compare: finds what is near to a lesson.
        """
        self._store = store
        self._credit = credit
        self._compare = compare

    def library(
        self,
        data: bytes,
        source: str,
        actor: str,
        *,
        form: str | None = None,
        domain: str | None = None,
        dry_run: bool = False,
    ) -> Arrived:
        """Read a library and propose its lessons, all of them in one transaction; the same file again changes nothing.

        Args:
            data: the file.
            source: its name; one that looks like a secret is not kept.
            actor: who imports.
            form: what to read it as (`core.packs.READERS`); None recognises it.
            domain: of lessons whose file names none; None = general.
            dry_run: write nothing.

        Raises:
            PackError: the file cannot be trusted or read, or is from before a redaction; nothing was changed.
            InputError: there is no such form.
        """
        form, found = read_library(data, form)
        found = self._spelled(_fit(found))
        sha256 = hashlib.sha256(data).hexdigest()
        self._refuse_redacted(sha256)
        key = content_hash([sha256, form, domain])
        arrived = Arrived(
            form=form,
            source=kept_name(source),
            sha256=sha256,
            name=found.name,
            version=found.version,
            lessons=len(found.lessons),
            aside=found.aside,
            notes=found.notes,
            dry_run=dry_run,
        )
        if before := self._store.imports.find(key):
            return arrived.model_copy(update={"before": before})
        looked = self._look(found)  # may take long: before the write lock is held
        notes = (*found.notes, *filter(None, [looked.note]))
        arrived = arrived.model_copy(update={"near_by": looked.by, "notes": notes})
        with self._store.writing():
            if before := self._store.imports.find(key):
                return arrived.model_copy(update={"before": before})
            new, joined = self._parted(found, domain, looked)
            if not dry_run:
                new = self._propose(new, found, arrived, domain, actor)
                ids = {each.place: each.proposal_id for each in new}
                joined = [j.model_copy(update={"into": ids.get(j.into, j.into)}) for j in joined]
                made = Import(key=key, actor=actor, **arrived.model_dump(include=set(Import.model_fields)))
                self._store.imports.add(made, _outcomes(found, new, joined), found.aside)
        return arrived.model_copy(update={"new": tuple(new), "joined": tuple(joined)})

    def _refuse_redacted(self, sha256: str) -> None:
        """Refuse a file of our own from before a redaction: it would bring back what was taken out."""
        if found := self._store.events.export_before_redaction(sha256):
            exported, redacted = found
            raise PackError(
                f"This file was exported here on {exported.at[:10]} ({exported.subject}), before {redacted.subject} of "
                f"{redacted.at[:10]}, so it may hold what was taken out: export anew, and import that."
            )

    def _spelled(self, found: ForeignLibrary) -> ForeignLibrary:
        """Domains that differ from one in use only in case or spaces are that one: matching is exact."""
        in_use = dict.fromkeys(
            [*self._store.tasks.counts(), *(e.domain for e in self._store.versions.library())]
        )
        meant = {
            named: next(one for one in in_use if same_domain(one, named))
            for named in {lesson.domain for lesson in found.lessons} - {"", *in_use}
            if any(same_domain(one, named) for one in in_use)
        }
        if not meant:
            return found
        lessons = [
            lesson.model_copy(update={"domain": meant.get(lesson.domain, lesson.domain)})
            for lesson in found.lessons
        ]
        notes = [
            f"the domain {named!r} is taken as {one!r}, which is in use here"
            for named, one in sorted(meant.items())
        ]
        return found.model_copy(update={"lessons": tuple(lessons), "notes": (*found.notes, *notes)})

    def _look(self, found: ForeignLibrary) -> _Looked:
        mark = self._mark()
        there = self._there()
        texts = list(dict.fromkeys(lesson.text for lesson in found.lessons))
        compared = self._compare(texts, [text for _, text, _ in there], NEAR)
        near = {
            text: [there[one.place][:2] for one in alike]
            for text, alike in zip(texts, compared.alike(), strict=True)
        }
        return _Looked(mark, there, near, compared.by, compared.note)

    def _mark(self) -> int:
        """Changes with the library and its proposals: nothing happens to them without a line in the log."""
        newest = self._store.events.newest(1)
        return newest[0].id if newest else 0

    def _parted(
        self, found: ForeignLibrary, domain: str | None, looked: _Looked
    ) -> tuple[list[NewLesson], list[JoinedLesson]]:
        """Part what is new from what the library, an open proposal or an earlier lesson of the file says already."""
        there = looked.there if self._mark() == looked.mark else self._there()
        said = {(normalise(text), of): i for i, text, of in there}
        anywhere = {normalise(text): i for i, text, _ in there} if domain is None else {}
        refused = {normalise(r.text): r for r in reversed(self._store.imports.rejected())}
        new: list[NewLesson] = []
        joined: list[JoinedLesson] = []
        for lesson in found.lessons:
            same = (normalise(lesson.text), domain_or(lesson, domain))
            known = {"place": lesson.place, "their_id": lesson.their_id, "text": lesson.text}
            into = said.get(same) or (None if lesson.domain else anywhere.get(same[0]))
            if into is not None:
                joined.append(JoinedLesson(into=into, **known))
                continue
            said[same] = lesson.place
            words = count_words(lesson.text)
            new.append(
                NewLesson(
                    proposal_id="",
                    words=words,
                    too_long=words > MAX_WORDS,
                    near=tuple(i for i, _ in looked.near[lesson.text]),
                    opposed=tuple(i for i, text in looked.near[lesson.text] if opposed(lesson.text, text)),
                    rejected=refused[same[0]].id if same[0] in refused else None,
                    **known,
                )
            )
        return new, joined

    def _there(self) -> list[tuple[str, str, str]]:
        """(id, text, domain) of what waits and what is live; the experiences come last, so that they are joined."""
        library = self._store.versions.library()

        def domain_of(targets: Sequence[str]) -> str:
            known = (library.experiences[i].domain for i in targets if i in library.experiences)
            return next(known, GENERAL)

        waiting = [p for p in self._store.proposals.open() if p.op != "delete"]
        proposed = [(p.id, p.text, p.domain or domain_of(p.targets)) for p in waiting]
        return proposed + [(e.id, e.text, e.domain) for e in library]

    def _propose(
        self,
        new: Sequence[NewLesson],
        found: ForeignLibrary,
        arrived: Arrived,
        domain: str | None,
        actor: str,
    ) -> list[NewLesson]:
        by_place = {lesson.place: lesson for lesson in found.lessons}
        base = self._store.versions.head()
        refused = {r.id: r for r in self._store.imports.rejected()}
        proposals = []
        for each in new:
            lesson = by_place[each.place]
            proposals.append(
                Proposal(
                    id="",  # the store gives it
                    operation=Add(text=lesson.text, kind=lesson.kind, domain=domain_or(lesson, domain)),
                    extractor="pack",
                    rationale=_told(lesson, each, arrived, refused.get(each.rejected or "")),
                    base_version=base,
                    learned_on=lesson.learned_on,
                )
            )
        ids = self._store.proposals.add(proposals, actor)
        return [e.model_copy(update={"proposal_id": i}) for e, i in zip(new, ids, strict=True)]

    def usage(self, data: bytes, source: str, actor: str, *, dry_run: bool = False) -> UsageArrived:
        """Read a usage log of the Python loader and credit the lessons that it speaks of; each entry counts once.

        Raises:
            InputError: the file as a whole cannot be read; nothing was changed.
        """
        source = kept_name(source)
        log = read_usage(data, source)
        aside = tuple(Aside(place=f"line {r.line}", reason=r.reason, raw=r.raw) for r in log.aside)
        with self._store.writing():
            fresh = self._store.imports.missing(log.entries)
            known, unknown = self._known(fresh)
            telling = [entry for entry in known if entry.injected]
            if not dry_run:
                self._store.imports.add_entries(source, fresh)
                self._store.imports.set_aside(source, aside)
                if telling:
                    self._credit(telling)  # they are kept by now
                if fresh:
                    self._store.events.append(
                        actor, "usage.imported", source, entries=len(fresh), credited=len(telling)
                    )
            told = {i for entry in telling for i in entry.injected}
            earned = Crediting(self._store).waiting(told) if told and not dry_run else []
        return UsageArrived(
            source=source,
            new=len(fresh),
            known=len(log.entries) - len(fresh),
            aside=aside,
            credited=len(telling),
            unknown=unknown,
            earned=tuple(earned),
            dry_run=dry_run,
        )

    def _known(self, entries: Sequence[UsageEntry]) -> tuple[list[UsageEntry], dict[str, int]]:
        """The entries with only those lessons that this workspace published with that text, and the others counted."""
        texts = Texts(self._store)
        kept: list[UsageEntry] = []
        unknown: Counter[str] = Counter()
        for entry in entries:
            known = texts.known(entry)
            unknown.update(sorted(entry.injected.keys() - known))
            kept.append(entry.only(known))
        return kept, dict(unknown)


def _fit(found: ForeignLibrary) -> ForeignLibrary:
    """The library with what must not be a lesson set aside."""
    kept, aside = [], [*found.aside]
    for lesson in found.lessons:
        if why := unfit(lesson.text):
            reason = f"it {why.what}: {why.instead}"
            aside.append(Aside(place=lesson.place, reason=reason, raw=bounded(lesson.text, MAX_RAW)))
        else:
            kept.append(lesson)
    return found.model_copy(update={"lessons": tuple(kept), "aside": tuple(aside)})


def _told(lesson: ForeignLesson, new: NewLesson, arrived: Arrived, refused: Rejected | None) -> str:
    """Where a lesson came from, and what was claimed of it, in words for the reviewer."""
    whose = f"the library {arrived.name!r}" if arrived.name else f"{arrived.source}"
    version = "" if arrived.version is None else f", version {arrived.version}"
    claims = [f"confidence {lesson.confidence:.2f}"] if lesson.confidence is not None else []
    claims += [f"{lesson.wins} wins in {lesson.uses} uses"] if lesson.uses else []
    near = [f"{i} (says the opposite)" if i in new.opposed else i for i in new.near]
    parts = [
        f"Imported ({arrived.form}) from {whose}{version}, there {lesson.their_id or lesson.place},"
        f" file {arrived.sha256[:12]}.",
        f"It stands under {lesson.section!r}." if lesson.section else "",
        f"Claimed there, not taken over: {', '.join(claims)}." if claims else "",
        f"Near: {', '.join(near)}." if near else "",
        refused.sentence if refused else "",
    ]
    return " ".join(part for part in parts if part)


def _outcomes(
    found: ForeignLibrary, new: Sequence[NewLesson], joined: Sequence[JoinedLesson]
) -> list[ImportedLesson]:
    """What became of each lesson, in the order of the file."""
    ids = {each.place: each.proposal_id for each in new}
    into = {each.place: each.into for each in joined}
    return [
        ImportedLesson(
            place=lesson.place,
            their_id=lesson.their_id,
            became=ids.get(lesson.place) or into[lesson.place],
            joined=lesson.place in into,
            claimed=lesson.model_dump(include={"confidence", "uses", "wins", "learned_on", "section"}),
        )
        for lesson in found.lessons
    ]
