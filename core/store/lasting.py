"""What a restore does not take back: which numbers were given, and that texts were redacted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from core.store.database import Database, Row

RESTORED = "workspace.restored"
"""Kind of the log's line that keeps the highest numbers that were given before."""
GIVEN = f"SELECT data ->> ? FROM events WHERE kind = '{RESTORED}' ORDER BY id DESC LIMIT 1"
NUMBERS = {
    "proposals": "number",
    "experiences": "number",
    "versions": "number",
    "runs": "number",
    "jobs": "number",
    "evaluations": "number",
    "priors": "number",
    "quarantine": "id",
}
"""Tables whose rows are called by a number, and its column."""


class Lasting(NamedTuple):
    """What a workspace has that outlasts its being replaced by a backup of it."""

    given: dict[str, int]
    """The highest number of each kind that was ever given."""
    redactions: tuple[Row, ...] = ()
    """Whole rows."""
    first: tuple[object, ...] | None = None
    """When, by whom and why its first version was made: backups of one workspace have that in common."""

    @property
    def unproved(self) -> tuple[int, ...]:
        """Redactions whose text may still be in its files."""
        return tuple(row["id"] for row in self.redactions if row["proved_at"] is None)


def given(database: Database, what: str) -> int:
    """The highest number that one of a kind was given before a restore; 0 where there was none."""
    return int(database.value(GIVEN, f"$.given.{what}") or 0)


def lasting(path: Path) -> Lasting | None:
    """Read it off a database, of whatever schema; None where it cannot be read."""
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute("SELECT number FROM versions").fetchone()
            first = db.execute("SELECT created_at, author, message FROM versions WHERE number = 1").fetchone()
            found = {kind: max(_highest(db, kind), _before(db, kind)) for kind in NUMBERS}
            found["quarantine"] = max(found["quarantine"], _set_aside(db))
            return Lasting(found, tuple(_redactions(db)), first)
    except sqlite3.Error:
        return None


def _highest(db: sqlite3.Connection, kind: str) -> int:
    with suppress(sqlite3.OperationalError):  # an older schema has no such table
        return int(db.execute(f"SELECT coalesce(max({NUMBERS[kind]}), 0) FROM {kind}").fetchone()[0])
    return 0


def _before(db: sqlite3.Connection, kind: str) -> int:
    row = db.execute(GIVEN, (f"$.given.{kind}",)).fetchone()
    return int(row[0] or 0) if row else 0


def _set_aside(db: sqlite3.Connection) -> int:
    """The highest number in the quarantine that the log tells of: a run that is discarded takes its rows away."""
    told = db.execute(
        "SELECT max(CAST(substr(subject, 3) AS INTEGER)) FROM events WHERE kind = 'quarantine.set_aside'"
    ).fetchone()
    return int(told[0] or 0)


def _redactions(db: sqlite3.Connection) -> list[Row]:
    with suppress(sqlite3.OperationalError):
        cursor = db.execute("SELECT * FROM redactions ORDER BY id")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]
    return []


def keep_redactions(database: Database, rows: Sequence[Row]) -> list[int]:
    """Take over the records of redactions that a backup does not know, as not proved; gives their numbers.

    What they took out may be in the backup: so the doctor names them, and the same text redacted again is known.
    """
    there = {row["hash"] for row in database.rows("SELECT hash FROM redactions")}
    kept = []
    for row in rows:
        if row["hash"] in there:
            continue
        taken = database.value("SELECT 1 FROM redactions WHERE id = ?", row["id"])
        number = int(database.value("SELECT max(id) + 1 FROM redactions")) if taken else row["id"]
        database.insert("redactions", {**row, "id": number, "proved_at": None})
        kept.append(number)
    return kept
