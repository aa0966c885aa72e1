"""Every value of every table, looked through for texts, and rewritten without them.

1. A JSON value is rewritten string by string (keys, too), so it stays JSON; all else is rewritten as plain text.
2. Compressed values are unpacked, rewritten and packed again; in another way where bytes hold the text by chance.
3. What Winnow made up itself stays, though the text occurs in it by chance: ids, hashes, times, words such as
   `approved`, numbers. Such values are remembered, so that a search of the file's bytes can tell them from the text.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from core.record import canonical_json
from core.store.integrity import tables
from core.store.needle import Needle, merged

Replacement = tuple[Needle, str]
"""What to look for, and what to put there."""

OWN = re.compile(
    r"(?:[REPJQ]|EV|PR)-?\d+(?:[-+]\d+)*|[0-9a-f]{32}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    r"|version \d+|redaction \d+",
    re.ASCII,
)
"""Ids, hashes and times of Winnow's own."""
WORDS = {"kind", "status", "op", "split", "extractor", "role", "stage"}
"""Columns and keys of a fixed vocabulary."""
WORD = re.compile(r"[a-z_]+(?:\.[a-z_]+)*", re.ASCII)
FREE = {"metadata", "parameters"}
"""Columns and keys whose numbers are the user's own."""
BINARY = {("embeddings", "vector")}
"""Columns of numbers, which may hold a short text by chance; their rows can be made again, and are removed."""
ADDRESSES = {"base_url"}
"""Columns and keys where no mark can stand that has spaces in it."""
LEVELS = (6, 1, 9, 3, 2, 4, 5, 7, 8, 0)
"""Ways to compress, in the order in which they are tried."""
BATCH = 500
STYLES: tuple[Callable[[Any], str], ...] = (
    canonical_json,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
    json.dumps,
    lambda value: json.dumps(value, separators=(",", ":")),
)
"""How JSON is written here: what one of them gives back byte for byte is taken for JSON."""


class Sweep:
    """One pass over a database.

    Args:
        db: the connection; to rewrite, inside a transaction.
        replacements: what to look for; earlier ones come first where they overlap.
    """

    def __init__(self, db: sqlite3.Connection, replacements: Sequence[Replacement]) -> None:
        self._db = db
        self._replacements = replacements
        self._addresses = [
            (needle, re.sub(r"[^\w-]+", "-", mark).strip("-")) for needle, mark in replacements
        ]
        self.places: Counter[str] = Counter()
        """Occurrences by table and column."""
        self.kept: set[str] = set()
        """Values of Winnow's own that hold the text by chance."""
        self.changed: list[tuple[str, int]] = []
        """Rows that were rewritten, by table and rowid."""
        self.dropped: Counter[str] = Counter()
        """Rows that were removed, by table."""

    def count(self) -> None:
        """Look, and change nothing."""
        for table in tables(self._db):
            for _ in self._rewritten(table):
                pass

    def rewrite(self, *, drop: Sequence[str] = ()) -> None:
        """Rewrite every value; of the tables in `drop`, remove the row instead."""
        for table in tables(self._db):
            for rowid, values in self._rewritten(table):
                if table in drop:
                    self._db.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (rowid,))
                    self.dropped[table] += 1
                    continue
                columns = ", ".join(f'"{name}" = ?' for name in values)
                self._db.execute(f'UPDATE "{table}" SET {columns} WHERE rowid = ?', (*values.values(), rowid))
                self.changed.append((table, rowid))

    def _rewritten(self, table: str) -> Iterator[tuple[int, dict[str, object]]]:
        for rowid, row in rows(self._db, table):
            values = {}
            for column, value in row.items():
                new, hits = self._value(table, column, value)
                if new is not value or hits:
                    values[column] = new
                if hits:
                    self.places[f"{table}.{column}"] += hits
            if values:
                yield rowid, values

    def _value(self, table: str, column: str, value: object) -> tuple[object, int]:
        if isinstance(value, str):
            return self._text(value, column)
        if not isinstance(value, bytes):
            return value, 0
        if (table, column) in BINARY:
            return value, self._in(value)
        unpacked = unpack(value)
        if unpacked is None:
            return value, 0
        new, hits = self._text(unpacked, column)
        return (self._packed(new), hits) if hits or self._in(value) else (value, 0)

    def _packed(self, text: str) -> bytes:
        """A text, compressed so that none of the texts is in its bytes by chance, where that can be had."""
        ways = (zlib.compress(text.encode(), level) for level in LEVELS)
        return next((packed for packed in ways if not self._in(packed)), zlib.compress(text.encode()))

    def _in(self, value: bytes) -> int:
        return sum(needle.count_bytes(value) for needle, _ in self._replacements)

    def _text(self, value: str, column: str) -> tuple[str, int]:
        if not any(needle.found(value) for needle, _ in self._replacements):
            return value, 0
        if value[:1] in "{[" and (read := _json_of(value)) is not None:
            parsed, style = read
            new, hits = self._json(parsed, column)
            return (style(new), hits) if hits else (value, 0)
        return self._leaf(value, column)

    def _json(self, value: Any, key: str, free: bool = False) -> tuple[Any, int]:
        free = free or key in FREE
        if isinstance(value, str):
            return self._leaf(value, key)
        if isinstance(value, dict):
            found: dict[str, Any] = {}
            total = 0
            for name, item in value.items():
                new_name, in_name = self._leaf(name, "")
                new_item, in_item = self._json(item, name, free)
                while in_name and new_name in found:
                    new_name += "'"  # two keys that were told apart by the text
                found[new_name] = new_item
                total += in_name + in_item
            return found, total
        if isinstance(value, list):
            pairs = [self._json(item, key, free) for item in value]
            return [new for new, _ in pairs], sum(hits for _, hits in pairs)
        if free and isinstance(value, int | float) and not isinstance(value, bool):
            new, hits = merged(self._replacements, repr(value))
            return (new, hits) if hits else (value, 0)
        return value, 0

    def _leaf(self, value: str, key: str) -> tuple[str, int]:
        new, hits = merged(self._addresses if key in ADDRESSES else self._replacements, value)
        if hits and self._is_own(value, key):
            self.kept.add(value)
            return value, 0
        return new, hits

    def _is_own(self, value: str, key: str) -> bool:
        if any(needle.text == value for needle, _ in self._replacements):
            return False
        return bool(OWN.fullmatch(value) or (key in WORDS and WORD.fullmatch(value)))


def rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The rows of a table by rowid, read in batches, so that what was read may be rewritten."""
    last = -(2**63)
    while True:
        cursor = db.execute(
            f'SELECT rowid, * FROM "{table}" WHERE rowid > ? ORDER BY rowid LIMIT ?', (last, BATCH)
        )
        names = [column[0] for column in cursor.description][1:]
        batch = cursor.fetchall()
        if not batch:
            return
        for rowid, *values in batch:
            yield rowid, dict(zip(names, values, strict=True))
        last = batch[-1][0]


def unpack(value: bytes) -> str | None:
    """The text of a compressed value, or of one that is UTF-8; None where it is neither."""
    try:
        return zlib.decompress(value).decode()
    except (zlib.error, UnicodeDecodeError):
        pass
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def strings(db: sqlite3.Connection) -> Iterator[str]:
    """Every text in a database: whole values, and each string inside of JSON."""
    for table in tables(db):
        for _, row in rows(db, table):
            for value in row.values():
                text = unpack(value) if isinstance(value, bytes) else value
                if isinstance(text, str):
                    yield text
                    if text[:1] in "{[" and (read := _json_of(text)) is not None:
                        yield from _strings_of(read[0])


def _strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings_of(item)


def _json_of(text: str) -> tuple[Any, Callable[[Any], str]] | None:
    """A JSON value and how it is written; None where rewriting it would change more than the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return next(((value, style) for style in STYLES if style(value) == text), None)
