"""Rows that were set aside keep which file they stood in, so that they are known when the same file comes again."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS


@MIGRATIONS()
def m019_aside_of_file(db: Database) -> None:
    """`file`: hash of what is in the file; empty where it is not known, as for all that came before this upgrade."""
    db.execute("ALTER TABLE set_aside ADD COLUMN file TEXT NOT NULL DEFAULT ''")
    db.execute("CREATE INDEX set_aside_by_file ON set_aside (file, line) WHERE file <> ''")
