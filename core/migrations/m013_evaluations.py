"""Evaluations, and what was measured of a lesson, a proposal or a version (DESIGN 2.10).

The rollouts of an evaluation lie where all rollouts lie: its arms are runs of the kind "evaluated".
"""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
CREATE TABLE evaluations (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, request TEXT NOT NULL, purpose TEXT NOT NULL,
    config TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, runs TEXT NOT NULL,
    stopped TEXT NOT NULL DEFAULT '{}', note TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL, finished_at TEXT
) STRICT;
CREATE INDEX evaluations_by_request ON evaluations (request);

CREATE TABLE measured (
    kind TEXT NOT NULL, subject TEXT NOT NULL, evaluation_id TEXT NOT NULL REFERENCES evaluations (id),
    version INTEGER NOT NULL, mean REAL, width REAL, body TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (kind, subject, evaluation_id)
) STRICT;
CREATE INDEX measured_by_evaluation ON measured (evaluation_id);
CREATE INDEX runs_by_kind ON runs (kind, number);
"""


@MIGRATIONS()
def m013_evaluations(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
