"""A line of the log, or of a redaction, is not written over by one with the same id.

`INSERT OR REPLACE` takes the old row away without a `BEFORE DELETE` trigger, unless recursive triggers are on.
"""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS

KEPT = ("events", "redactions")


@MIGRATIONS()
def m012_events_once(db: Database) -> None:
    for table in KEPT:
        db.execute(
            f"CREATE TRIGGER {table}_once BEFORE INSERT ON {table}"
            f" WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)"
            f" BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END"
        )
