"""Full-text search over the experiences as they are now.

1. A query is words and "phrases in quotes"; an experience that has all of them is found. Case and accents do not
   count.
2. A word is found where a word of the text starts with it: `read` finds `reading`. A phrase is found as it stands.
3. A character of a script without spaces between words is a word of its own, so any two ideographs that stand
   together are found; so is `read` in `用read读取`.
4. What has no letter or digit (an emoji, `->`) is looked for as it is written.

There is no query language: `AND`, `*`, `^`, `-` and brackets are text like any other.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.errors import InputError
from core.experience import Experience
from core.migrations.m004_search import UNSPACED
from core.record import Record
from core.store.database import Database, Row
from core.store.versions import FROM, STATE

FROM_WORDS = (
    " FROM experience_words w CROSS JOIN experiences e ON e.number = w.rowid"
    " CROSS JOIN experience_states s ON s.experience_id = e.id"
)

MAX_QUERY = 2_000
"""Characters of a query."""

_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
_APART = re.compile(f"([{UNSPACED}])")
_WORDS = re.compile(f"[{UNSPACED}]|[^\\W_{UNSPACED}]+")
_ACCENTS_END = "\u2e80"
_INDEXED = unicodedata.ucd_3_2_0
"""Letters and digits that the tokenizer of every SQLite knows."""


class Hit(Record):
    """An experience that a search found."""

    experience: Experience
    marks: tuple[tuple[int, int], ...] = ()
    """Where its text matches: from character, to before character; apart, and in the order of the text."""

    def marked(self, start: str = "«", end: str = "»") -> str:
        """The text with its matches between marks."""
        text = self.experience.text
        for a, b in reversed(self.marks):
            text = f"{text[:a]}{start}{text[a:b]}{end}{text[b:]}"
        return text


class Term(NamedTuple):
    text: str
    """Without a quotation mark, unless it is nothing but those."""
    phrase: bool

    @property
    def indexed(self) -> bool:
        return any(_INDEXED.category(c)[0] in "LN" for c in self.text)

    @property
    def open(self) -> bool:
        """Whether its last word may go on."""
        return not self.phrase and self.text[-1].isalnum() and not _APART.match(self.text[-1])

    def match(self) -> str:
        """The term for FTS5: a string, in which no operator is one."""
        return '"' + _APART.sub(r" \1 ", self.text) + '"' + ("*" if self.open else "")


class Search:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self,
        query: str,
        *,
        dead: bool = False,
        kind: str = "",
        domain: str = "",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Hit], int]:
        """One page of the experiences that match, the best first, and how many there are in all.

        Args:
            query: words and "phrases"; see the rules of this module.
            dead: with it, deleted and merged experiences, too, with the text that they had last.
            kind: of this kind only; empty takes all.
            domain: of this domain only; empty takes all.
            limit: at most so many.
            offset: leaving out so many.

        Raises:
            InputError: the query holds nothing to search for, or is too long.
        """
        terms = terms_of(query)
        words = " AND ".join(t.match() for t in terms if t.indexed)
        where = " WHERE s.to_version IS NULL AND (?1 OR s.status = 'live') AND (?2 = '' OR s.kind = ?2)"
        where += " AND (?3 = '' OR s.domain = ?3)"
        values: list[object] = [dead, kind, domain]
        source, order = FROM, "e.number"
        if words:
            source, order = FROM_WORDS, "w.rank, e.number"
            where += " AND w.experience_words MATCH ?4"
            values.append(words)
        if as_written := [t.text for t in terms if not t.indexed]:
            values.append(json.dumps(as_written))
            where += (
                f" AND NOT EXISTS (SELECT 1 FROM json_each(?{len(values)}) WHERE NOT instr(s.text, value))"
            )
        total = self._database.value(f"SELECT count(*){source}{where}", *values)
        rows = self._database.rows(
            f"SELECT {STATE}{source}{where} ORDER BY {order} LIMIT {int(limit)} OFFSET {int(offset)}", *values
        )
        return [hit_of(row, terms) for row in rows], int(total)

    def like(self, text: str, k: int = 5) -> list[Experience]:
        """Live experiences that share words with a text, the most telling words first; no model is asked."""
        words = dict.fromkeys(w for w in _WORDS.findall(_folded(text)[0]) if len(w) > 2 or _APART.match(w))
        terms = [t for w in list(words)[:64] if (t := Term(w, True)).indexed]
        if not terms:
            return []
        rows = self._database.rows(
            f"SELECT {STATE}{FROM_WORDS} WHERE s.to_version IS NULL AND s.status = 'live'"
            " AND w.experience_words MATCH ?1 ORDER BY w.rank, e.number LIMIT ?2",
            *(" OR ".join(t.match() for t in terms), k),
        )
        return [Experience(**row) for row in rows]


def terms_of(query: str) -> list[Term]:
    """The distinct terms of a query.

    Raises:
        InputError: there is none, or the query is too long.
    """
    if len(query) > MAX_QUERY:
        raise InputError(f"A search has at most {MAX_QUERY:,} characters; this one has {len(query):,}.")
    query = query.replace("\x00", " ").encode("utf-8", "replace").decode()
    found = [Term(m[1], True) if m[2] is None else Term(m[2], False) for m in _TERM.finditer(query)]
    terms = dict.fromkeys(t for t in found if t.text.strip())
    if not terms and query.strip():  # quotes around nothing
        terms = {Term(query.strip(), True): None}
    if not terms:
        raise InputError("Say what to search for: words, or a phrase in quotes.")
    return list(terms)


def hit_of(row: Row, terms: Sequence[Term]) -> Hit:
    experience = Experience(**row)
    return Hit(experience=experience, marks=tuple(_marks(experience.text, terms)))


def _marks(text: str, terms: Sequence[Term]) -> Iterator[tuple[int, int]]:
    folded, places = _folded(text)
    spans = sorted(
        (places[m.start()], places[m.end() - 1] + 1)
        for term in terms
        for m in re.finditer(_pattern(term), folded)
        if m.end() > m.start()
    )
    start, end = -1, -1
    for a, b in spans:
        if a > end:
            if end > start:
                yield start, end
            start = a
        end = max(end, b)
    if end > start:
        yield start, end


def _pattern(term: Term) -> str:
    if not term.indexed:
        return re.escape(_folded(term.text)[0])
    words = _WORDS.findall(_folded(term.text)[0])
    last = words[-1] if words else ""
    before = "" if not words or _APART.match(words[0]) else f"(?<![^\\W_{UNSPACED}])"
    after = "" if term.open or _APART.match(last) else f"(?![^\\W_{UNSPACED}])"
    return before + r"[\W_]*".join(map(re.escape, words)) + after


def _folded(text: str) -> tuple[str, list[int]]:
    """A text without case and accents, and the place in the text that each of its characters comes from."""
    folded, places = [], []
    for i, c in enumerate(text):
        accented = c < _ACCENTS_END  # the dots of a kana and the parts of a Hangul syllable are no accents
        for d in (unicodedata.normalize("NFD", c) if accented else c).lower():
            if not unicodedata.combining(d):
                folded.append(d)
                places.append(i)
    return "".join(folded), places
