"""Libraries and usage logs from elsewhere: which files came in, and what became of each of their parts."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
CREATE TABLE imports (
    key TEXT PRIMARY KEY, form TEXT NOT NULL, source TEXT NOT NULL, sha256 TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER, actor TEXT NOT NULL, imported_at TEXT NOT NULL
) STRICT;

CREATE TABLE import_lessons (
    import_key TEXT NOT NULL REFERENCES imports (key), place TEXT NOT NULL, their_id TEXT NOT NULL,
    became TEXT NOT NULL, joined INTEGER NOT NULL, claimed TEXT NOT NULL, PRIMARY KEY (import_key, place)
) STRICT;
CREATE INDEX import_lessons_by_outcome ON import_lessons (became);

CREATE TABLE import_aside (
    key TEXT PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL, reason TEXT NOT NULL, raw TEXT NOT NULL
) STRICT;

CREATE TABLE usage_entries (
    key TEXT PRIMARY KEY, source TEXT NOT NULL, entry TEXT NOT NULL, imported_at TEXT NOT NULL
) STRICT;
"""


@MIGRATIONS()
def m006_imports(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
