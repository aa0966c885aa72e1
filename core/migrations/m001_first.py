"""Tables of the first version."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
CREATE TABLE tasks (
    id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL UNIQUE, question TEXT NOT NULL, answer TEXT,
    verifier TEXT NOT NULL, domain TEXT NOT NULL, split TEXT NOT NULL, metadata TEXT NOT NULL,
    text_key TEXT NOT NULL, source TEXT NOT NULL, imported_at TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_by_split ON tasks (split, domain, ordinal);
CREATE INDEX tasks_by_text ON tasks (text_key);

CREATE TABLE set_aside (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, source TEXT NOT NULL, line INTEGER NOT NULL,
    reason TEXT NOT NULL, raw TEXT NOT NULL, at TEXT NOT NULL
) STRICT;

CREATE TABLE endpoints (name TEXT PRIMARY KEY, settings TEXT NOT NULL) STRICT;
CREATE TABLE roles (role TEXT PRIMARY KEY, endpoint TEXT NOT NULL) STRICT;

CREATE TABLE runs (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, kind TEXT NOT NULL, request TEXT NOT NULL,
    config TEXT NOT NULL, library_version INTEGER NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL,
    note TEXT NOT NULL DEFAULT '', report TEXT NOT NULL DEFAULT '{}', spent TEXT NOT NULL DEFAULT '{}',
    created_at TEXT NOT NULL, finished_at TEXT
) STRICT;
CREATE INDEX runs_by_request ON runs (request);

CREATE TABLE groups (
    id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs (id), ordinal INTEGER NOT NULL,
    task_id TEXT NOT NULL REFERENCES tasks (id), domain TEXT NOT NULL, epoch INTEGER NOT NULL,
    batch INTEGER NOT NULL, library_version INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
    size INTEGER NOT NULL, scored INTEGER NOT NULL DEFAULT 0, errors INTEGER NOT NULL DEFAULT 0,
    mean REAL, spread REAL, left_out TEXT NOT NULL DEFAULT '{}',
    not_injected TEXT NOT NULL DEFAULT '{}', UNIQUE (run_id, ordinal)
) STRICT;
CREATE INDEX groups_by_status ON groups (run_id, status, ordinal);
CREATE INDEX groups_by_task ON groups (task_id);

CREATE TABLE rollouts (
    id TEXT PRIMARY KEY, group_id TEXT NOT NULL REFERENCES groups (id), replicate INTEGER NOT NULL,
    answer TEXT NOT NULL, finish_reason TEXT, scores TEXT NOT NULL, reward REAL, advantage REAL,
    error TEXT, injected TEXT NOT NULL, model TEXT NOT NULL, usage TEXT NOT NULL, steps INTEGER NOT NULL,
    semantic TEXT NOT NULL DEFAULT '', duration_s REAL, UNIQUE (group_id, replicate)
) STRICT;
CREATE TABLE trajectories (
    rollout_id TEXT PRIMARY KEY REFERENCES rollouts (id), body BLOB NOT NULL
) STRICT;

CREATE TABLE calls (key TEXT PRIMARY KEY, completion TEXT NOT NULL, at TEXT NOT NULL) STRICT;

CREATE TABLE proposals (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, run_id TEXT REFERENCES runs (id),
    status TEXT NOT NULL, op TEXT NOT NULL, domain TEXT NOT NULL, extractor TEXT NOT NULL, strength REAL NOT NULL,
    body TEXT NOT NULL, edited_text TEXT, reason TEXT NOT NULL DEFAULT '', decided_by TEXT, decided_at TEXT,
    revision INTEGER NOT NULL DEFAULT 0, published_in INTEGER, experience_id TEXT
) STRICT;
CREATE INDEX proposals_by_status ON proposals (status, strength DESC, number);
CREATE INDEX proposals_by_run ON proposals (run_id, number);
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY, run_id TEXT REFERENCES runs (id), reason TEXT NOT NULL, raw TEXT NOT NULL,
    group_ids TEXT NOT NULL, at TEXT NOT NULL
) STRICT;

CREATE TABLE versions (
    number INTEGER PRIMARY KEY, parent INTEGER REFERENCES versions (number), author TEXT NOT NULL,
    message TEXT NOT NULL, created_at TEXT NOT NULL, size INTEGER NOT NULL
) STRICT;
CREATE TABLE experiences (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, epoch INTEGER NOT NULL
) STRICT;
CREATE TABLE experience_states (
    experience_id TEXT NOT NULL REFERENCES experiences (id), from_version INTEGER NOT NULL REFERENCES versions (number),
    to_version INTEGER, text TEXT NOT NULL, kind TEXT NOT NULL, domain TEXT NOT NULL, status TEXT NOT NULL,
    merged_into TEXT, proposal_id TEXT, learned_on TEXT NOT NULL, confidence REAL NOT NULL,
    uses INTEGER NOT NULL, wins INTEGER NOT NULL, PRIMARY KEY (experience_id, from_version)
) STRICT;
CREATE INDEX states_by_version ON experience_states (to_version, from_version);

CREATE TABLE embeddings (
    text_key TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (text_key, model)
) STRICT;

CREATE TABLE events (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_subject ON events (subject, id);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

INSERT INTO versions (number, parent, author, message, created_at, size)
VALUES (0, NULL, 'winnow', 'The empty library', '1970-01-01T00:00:00Z', 0);
"""


@MIGRATIONS()
def m001_first(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
