"""A library that somebody else wrote down: lessons that may become proposals, and what could not be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from core.errors import PackError
from core.experience import GENERAL, KINDS, Kind, check_domain, same_domain
from core.importers.source import MAX_RAW, bounded, storable
from core.packs.content import check_text_only, holds_secret
from core.packs.pack import MAX_EXPERIENCES, MAX_PACK_BYTES, MAX_TEXT
from core.record import Record

MAX_FIELD = 1_000
"""Characters of an id, a domain or the name of a model, as in the schema of a pack."""


class ForeignLesson(Record):
    """One lesson as it was handed in, with what its writer claims about it."""

    place: str
    """Where in the file it stands, e.g. "line 3"."""
    their_id: str
    text: str
    kind: Kind = "strategy"
    domain: str = ""
    """Empty where the file names none."""
    section: str = ""
    """Heading that it stands under; empty where the form has none."""
    confidence: float | None = None
    """As claimed; a proposal starts with a confidence of ours."""
    uses: int = 0
    wins: int = 0
    learned_on: str = ""
    """Model that it was learned on, where the file says so."""


class Aside(Record):
    """A part of the file that is no lesson, and why."""

    place: str
    reason: str
    raw: str
    """As it came, cut; empty where it looks like a secret."""


class ForeignLibrary(Record):
    """All of a file: every row is a lesson or set aside."""

    name: str = ""
    """What the library calls itself; empty where the form has no name."""
    version: int | None = None
    lessons: tuple[ForeignLesson, ...] = ()
    aside: tuple[Aside, ...] = ()
    notes: tuple[str, ...] = ()


class Claims(NamedTuple):
    """What a file says of a lesson besides its text, as it came."""

    kind: str = ""
    domain: str = ""
    section: str = ""
    confidence: float | None = None
    uses: int = 0
    wins: int = 0
    learned_on: str = ""


_SECRET = "holds what looks like a secret (a key, token or password)"


@dataclass
class Reading:
    """A file while it is read."""

    lessons: list[ForeignLesson] = field(default_factory=list)
    aside: list[Aside] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    _places: Counter[str] = field(default_factory=Counter)
    _hidden: int = 0

    def lesson(self, place: str, their_id: str, text: str, claims: Claims | None = None) -> None:
        """Take a lesson, or set it aside where it cannot be one.

        Raises:
            PackError: it holds NUL or half of a surrogate pair, or the file holds too many.
        """
        self._places[place] += 1
        if (count := self._places[place]) > 1:
            place = f"{place} (its {count}th)"  # a place names one lesson
        claims = claims or Claims()
        named = (their_id, claims.domain, claims.section, claims.learned_on)
        check_text_only([text, claims.kind, *named], place.capitalize())
        if holds_secret([text, claims.kind, *named]):
            self.set_aside(place, f"it {_SECRET}", "")
            return
        claims = claims._replace(domain=self._domain(claims.domain))
        reason = _no_lesson(text, named) or _no_domain(claims.domain)
        if reason:
            self.set_aside(place, reason, text)
            return
        kind = claims.kind if claims.kind in KINDS else "strategy"
        if claims.kind and kind != claims.kind:
            self.notes[f"the kind {claims.kind[:40]!r} is none of ours; taken as a strategy"] = None
        self.lessons.append(
            ForeignLesson(
                place=place,
                their_id=their_id,
                text=text,
                **{**claims._asdict(), "kind": kind},
            )
        )
        if len(self.lessons) > MAX_EXPERIENCES:
            raise PackError(f"The file holds more than {MAX_EXPERIENCES} lessons; that many are not read.")

    def entry(self, what: str, their_id: str) -> str:
        """The place of a part that has an id; one that looks like a secret is not repeated.

        >>> Reading().entry("entry", "G7")
        "entry 'G7'"
        """
        if not holds_secret(their_id):
            return f"{what} {their_id[:60]!r}"
        self._hidden += 1
        return f"{what} with a hidden id, number {self._hidden}"

    def _domain(self, named: str) -> str:
        """A domain without outer spaces; one that is `general` but for its case is that one, and this is said."""
        domain = named.strip()
        if domain != GENERAL and same_domain(domain, GENERAL):
            self.notes[f"the domain {domain!r} is taken as {GENERAL!r}"] = None
            return GENERAL
        return domain

    def set_aside(self, place: str, reason: str, raw: str) -> None:
        """Keep a part that is no lesson, but nothing of it that looks like a secret."""
        if holds_secret([raw, reason]):
            raw, reason = "", f"{'it is no lesson' if holds_secret(reason) else reason}; it {_SECRET}"
        kept = storable(bounded(raw, MAX_RAW)).replace("\x00", "\ufffd")
        self.aside.append(Aside(place=place, reason=storable(reason), raw=kept))

    def done(self, form: str, **about: Any) -> ForeignLibrary:
        """The library that was read; a name that looks like a secret is left out.

        Raises:
            PackError: there was no lesson in it.
        """
        if holds_secret(about.get("name")):
            about["name"] = ""
            self.notes[f"the name of the library is left out: it {_SECRET}"] = None
        if not self.lessons and not self.aside:
            raise PackError(f"There is no lesson in this file, read as {form}.")
        return ForeignLibrary(
            lessons=tuple(self.lessons), aside=tuple(self.aside), notes=tuple(self.notes), **about
        )


def text_of_file(data: bytes, form: str) -> str:
    """The text of a file that must be UTF-8.

    Raises:
        PackError: it is too large, not UTF-8, or holds the NUL character.
    """
    if len(data) > MAX_PACK_BYTES:
        raise PackError(f"The file has {len(data)} bytes; at most {MAX_PACK_BYTES} are read.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise PackError(f"The file is not UTF-8 text, so it is no {form}.") from e
    check_text_only(text, "The file")
    return text


def _no_lesson(text: str, named: tuple[str, ...]) -> str:
    if not text.strip():
        return "the text is empty"
    if len(text) > MAX_TEXT:
        return f"the text has {len(text)} characters; at most {MAX_TEXT} are read"
    if any(len(each) > MAX_FIELD for each in named):
        return f"its id, domain, heading or model has more than {MAX_FIELD} characters"
    return ""


def _no_domain(domain: str) -> str:
    try:
        check_domain(domain or GENERAL)
    except ValueError as e:
        return str(e)
    return ""


def domain_or(lesson: ForeignLesson, otherwise: str | None) -> str:
    """The domain that a lesson comes in with: its own, else the one named, else the general one."""
    return lesson.domain or otherwise or GENERAL
