"""What lessons earned, which of them a summary cites, and the dimension of each embedding model."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
CREATE TABLE credits (
    experience_id TEXT NOT NULL, source TEXT NOT NULL, followers INTEGER NOT NULL, others INTEGER NOT NULL,
    better INTEGER, in_sample INTEGER NOT NULL, at TEXT NOT NULL, folded_in INTEGER,
    PRIMARY KEY (experience_id, source)
) STRICT;
CREATE INDEX credits_by_fold ON credits (folded_in, experience_id);
CREATE INDEX credits_by_source ON credits (source);
CREATE TRIGGER credits_of_discarded_groups AFTER DELETE ON groups BEGIN
    DELETE FROM credits WHERE source = OLD.id AND folded_in IS NULL;
END;

CREATE TABLE citations (
    rollout_id TEXT PRIMARY KEY REFERENCES rollouts (id) ON DELETE CASCADE, used TEXT NOT NULL
) STRICT;

CREATE TABLE embedding_models (model TEXT PRIMARY KEY, dimension INTEGER NOT NULL) STRICT;
INSERT INTO embedding_models SELECT model, max(length(vector)) / 4 FROM embeddings GROUP BY model;
"""


@MIGRATIONS()
def m005_credit(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
