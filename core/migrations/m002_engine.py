"""Rewards in parts, epochs and batches, jobs, and a ledger of what was sent."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
ALTER TABLE rollouts ADD COLUMN extrinsic REAL;
ALTER TABLE rollouts ADD COLUMN components TEXT NOT NULL DEFAULT '{}';
ALTER TABLE rollouts ADD COLUMN accepted INTEGER;
ALTER TABLE rollouts ADD COLUMN summary TEXT NOT NULL DEFAULT '';
ALTER TABLE rollouts ADD COLUMN critique TEXT NOT NULL DEFAULT '';
UPDATE rollouts SET extrinsic = reward;
UPDATE rollouts SET components = json_object('verified', reward) WHERE reward IS NOT NULL;
UPDATE rollouts SET components = json_set(components, '$.recorded', reward) WHERE reward IS NOT NULL
    AND group_id IN (SELECT g.id FROM groups g JOIN runs r ON r.id = g.run_id WHERE r.kind = 'recorded');

ALTER TABLE groups ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN temperature REAL;
ALTER TABLE groups ADD COLUMN contrast TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN contrast_attempt INTEGER NOT NULL DEFAULT 0;

CREATE TABLE batches (
    run_id TEXT NOT NULL REFERENCES runs (id), epoch INTEGER NOT NULL, batch INTEGER NOT NULL,
    library_version INTEGER, extraction TEXT, published_in INTEGER, PRIMARY KEY (run_id, epoch, batch)
) STRICT;
INSERT INTO batches (run_id, epoch, batch, library_version)
SELECT DISTINCT run_id, epoch, batch, library_version FROM groups;

CREATE TABLE jobs (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, kind TEXT NOT NULL, subject TEXT NOT NULL,
    state TEXT NOT NULL, options TEXT NOT NULL DEFAULT '{}', now INTEGER NOT NULL DEFAULT 0,
    discard INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '', lease_until TEXT,
    attempts INTEGER NOT NULL DEFAULT 0, what TEXT NOT NULL DEFAULT '', done INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', actor TEXT NOT NULL,
    created_at TEXT NOT NULL, finished_at TEXT
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_subject ON jobs (subject, number);

CREATE TABLE spend (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, run_id TEXT NOT NULL, endpoint TEXT NOT NULL, stage TEXT NOT NULL,
    calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL
) STRICT;
CREATE INDEX spend_by_run ON spend (run_id);
INSERT INTO spend (at, run_id, endpoint, stage, calls, prompt_tokens, completion_tokens, cost_usd)
SELECT coalesce(finished_at, created_at), id, config ->> 'endpoint', 'before the ledger', spent ->> 'calls',
    spent ->> 'prompt_tokens', spent ->> 'completion_tokens', spent ->> 'cost_usd'
FROM runs WHERE spent ->> 'calls' > 0;
ALTER TABLE runs DROP COLUMN spent;
"""


@MIGRATIONS()
def m002_engine(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
