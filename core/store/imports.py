"""What came in from elsewhere: libraries, lesson by lesson, and usage logs; the same again changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import Field, JsonValue

from core.packs.foreign import Aside
from core.packs.usage_log import UsageEntry
from core.record import Record, canonical_json, content_hash
from core.store.database import Database, Row
from core.store.events import Events


class Import(Record):
    """One library that was imported."""

    key: str
    """Hash of the file and of what it was read as: the same again is no new import."""
    form: str
    source: str
    """Name of the file."""
    sha256: str
    """Of the file."""
    name: str = ""
    """What the library calls itself."""
    version: int | None = None
    """Number of its version, as its writer counts."""
    actor: str
    imported_at: str = ""


class ImportedLesson(Record):
    """What became of one lesson of such a library."""

    place: str
    their_id: str
    became: str
    """The proposal that it became or was joined with, or the experience that says the same."""
    joined: bool = False
    """Whether it was there already."""
    claimed: dict[str, JsonValue] = Field(default_factory=dict)
    """Confidence, uses, wins, model and heading, as the file says."""


class KeptEntry(NamedTuple):
    """One entry of a usage log that was kept."""

    place: int
    """Counts all that were ever kept, from 1."""
    key: str
    entry: UsageEntry


class Rejected(NamedTuple):
    """A proposal that was turned down."""

    id: str
    text: str
    reason: str

    @property
    def sentence(self) -> str:
        """For the reviewer of a proposal that says the same.

        >>> Rejected("P-0003", "Never print.", "harmful.").sentence
        'P-0003 said the same and was rejected: harmful.'
        """
        return f"{self.id} said the same and was rejected: {self.reason.rstrip('.')}."


class Imports:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def find(self, key: str) -> Import | None:
        row = self._database.row("SELECT * FROM imports WHERE key = ?", key)
        return Import(**row) if row else None

    def add(self, made: Import, lessons: Sequence[ImportedLesson], aside: Iterable[Aside]) -> None:
        """Keep a library that was imported, inside the transaction that makes its proposals."""
        with self._database.writing():
            row = made.model_dump() | {"imported_at": self._events.clock()}
            self._database.insert("imports", row)
            for lesson in lessons:
                values = lesson.model_dump() | {"claimed": canonical_json(lesson.claimed)}
                self._database.insert("import_lessons", {"import_key": made.key, **values})
            self.set_aside(made.source, aside)
            counts: dict[str, JsonValue] = {
                "form": made.form,
                "sha256": made.sha256,
                "name": made.name,
                "proposed": sum(not each.joined for each in lessons),
                "joined": sum(each.joined for each in lessons),
            }
            self._events.append(made.actor, "pack.imported", made.source, **counts)

    def lessons(self, key: str) -> list[ImportedLesson]:
        """What became of the lessons of one import, in the order of the file."""
        rows = self._database.rows(
            "SELECT place, their_id, became, joined, claimed FROM import_lessons WHERE import_key = ? ORDER BY rowid",
            key,
        )
        return [_lesson(row) for row in rows]

    def origin(self, became: str) -> list[tuple[Import, ImportedLesson]]:
        """Where a proposal or an experience was brought from, the first import first; empty where it was made here."""
        rows = self._database.rows("SELECT * FROM import_lessons WHERE became = ? ORDER BY rowid", became)
        found = []
        for row in rows:
            made = self.find(row.pop("import_key"))
            if made is not None:
                found.append((made, _lesson(row)))
        return found

    def set_aside(self, source: str, aside: Iterable[Aside]) -> None:
        """Keep what was no lesson or no entry; what is there already is not kept twice."""
        for each in aside:
            row = {"source": source, **each.model_dump()}
            self._database.execute(
                "INSERT INTO import_aside (key, source, place, reason, raw) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO NOTHING",
                *(content_hash(row), *row.values()),
            )

    def kept_aside(self, limit: int = 1000) -> list[tuple[str, Aside]]:
        """(source, what was set aside), the newest first."""
        rows = self._database.rows(
            "SELECT source, place, reason, raw FROM import_aside ORDER BY rowid DESC LIMIT ?", limit
        )
        return [(row.pop("source"), Aside(**row)) for row in rows]

    def missing(self, entries: Sequence[UsageEntry]) -> list[UsageEntry]:
        """Those entries of a usage log that are not kept yet, each once, in their order."""
        by_key = {entry.key: entry for entry in entries}
        there = self._database.rows(
            "SELECT key FROM usage_entries WHERE key IN (SELECT value FROM json_each(?))",
            json.dumps([*by_key]),
        )
        known = {row["key"] for row in there}
        return [entry for key, entry in by_key.items() if key not in known]

    def add_entries(self, source: str, entries: Iterable[UsageEntry]) -> None:
        """Keep entries that are `missing`, inside the transaction that credits them."""
        at = self._events.clock()
        with self._database.writing():
            for entry in entries:
                row = {"key": entry.key, "source": source, "entry": entry.canonical(), "imported_at": at}
                self._database.insert("usage_entries", row)

    def siblings(self, entries: Sequence[UsageEntry]) -> list[KeptEntry]:
        """What is kept of the tasks that entries name, and the entries without a task among what is kept."""
        tasks = sorted({entry.task for entry in entries if entry.task})
        alone = sorted({entry.entry for entry in entries if not entry.task})
        rows = self._database.rows(
            "SELECT * FROM (SELECT row_number() OVER (ORDER BY rowid) AS place, key, entry FROM usage_entries)"
            " WHERE entry ->> 'task' IN (SELECT value FROM json_each(?1))"
            " OR (entry ->> 'task' = '' AND entry ->> 'entry' IN (SELECT value FROM json_each(?2))) ORDER BY place",
            *(json.dumps(tasks), json.dumps(alone)),
        )
        return [KeptEntry(row["place"], row["key"], UsageEntry(**json.loads(row["entry"]))) for row in rows]

    def rejected(self) -> list[Rejected]:
        """Lessons that were turned down, with the reason, the newest first."""
        rows = self._database.rows(
            "SELECT id, coalesce(edited_text, json_extract(body, '$.operation.text'), '') AS text, reason"
            " FROM proposals WHERE status = 'rejected' AND op <> 'delete' ORDER BY number DESC"
        )
        return [Rejected(**row) for row in rows]

    def entries(self) -> list[UsageEntry]:
        """All entries of usage logs, as they came, in the order in which they came in."""
        rows = self._database.rows("SELECT entry FROM usage_entries ORDER BY rowid")
        return [UsageEntry(**json.loads(row["entry"])) for row in rows]


def _lesson(row: Row) -> ImportedLesson:
    return ImportedLesson(**{**row, "joined": bool(row["joined"]), "claimed": json.loads(row["claimed"])})
