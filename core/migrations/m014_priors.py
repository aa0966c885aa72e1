"""Token priors (DESIGN 2.8): each is written once and stays as it is; one content, one row."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
CREATE TABLE priors (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, content TEXT NOT NULL UNIQUE, body TEXT NOT NULL,
    derived_by TEXT NOT NULL, created_at TEXT NOT NULL
) STRICT;
"""


@MIGRATIONS()
def m014_priors(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
