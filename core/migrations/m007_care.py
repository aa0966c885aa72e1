"""What was redacted: who, when, why, and what kind of thing; never the text, only a salted hash of it."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
CREATE TABLE redactions (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL,
    salt TEXT NOT NULL, hash TEXT NOT NULL, places TEXT NOT NULL, proved_at TEXT
) STRICT;
CREATE TRIGGER redactions_stay BEFORE UPDATE OF id, at, actor, kind, reason, salt, hash, places ON redactions
BEGIN SELECT RAISE(ABORT, 'redactions are append-only'); END;
CREATE TRIGGER redactions_remain BEFORE DELETE ON redactions
BEGIN SELECT RAISE(ABORT, 'redactions are append-only'); END;
"""


@MIGRATIONS()
def m007_care(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
