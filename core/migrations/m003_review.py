"""Claims of reviewers, labels, and a log that the state can be rebuilt from."""

from __future__ import annotations

import json
from typing import Any

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

SCHEMA = """
ALTER TABLE events ADD COLUMN state TEXT;
CREATE INDEX events_by_kind ON events (kind, id);
CREATE INDEX proposals_by_version ON proposals (published_in, number);
CREATE INDEX states_of_proposals ON experience_states (proposal_id);

ALTER TABLE quarantine ADD COLUMN proposal_id TEXT;

CREATE TABLE claims (
    proposal_id TEXT PRIMARY KEY REFERENCES proposals (id) ON DELETE CASCADE, holder TEXT NOT NULL,
    taken_at TEXT NOT NULL, until TEXT NOT NULL
) STRICT;
CREATE INDEX claims_by_holder ON claims (holder, until);

CREATE TABLE labels (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL REFERENCES versions (number), protected INTEGER NOT NULL,
    moved_by TEXT NOT NULL, moved_at TEXT NOT NULL
) STRICT;
"""

NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"


@MIGRATIONS()
def m003_review(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
    _complete_the_log(db)


def _complete_the_log(db: Database) -> None:
    """Write what is there into the log: older events tell of decisions, but not of what came of them."""
    versions = list(db.query("SELECT * FROM versions WHERE number > 0 ORDER BY number"))
    proposals = list(db.query("SELECT * FROM proposals ORDER BY number"))
    if not versions and not proposals:
        return
    counts = {"versions": len(versions), "proposals": len(proposals)}
    _append(db, "log.completed", "log", counts, {"complete": True})
    for row in proposals:
        made = {**json.loads(row.pop("body")), **row}
        for derived in ("number", "op", "domain", "strength"):
            del made[derived]
        _append(db, "proposal.kept", row["id"], {"status": row["status"]}, {"made": made})
    for row in versions:
        states = db.query(
            "SELECT e.id, e.epoch, s.* FROM experience_states s JOIN experiences e ON e.id = s.experience_id"
            " WHERE s.from_version = ? ORDER BY e.number",
            [row["number"]],
        )
        experiences = [_without(s, "experience_id", "from_version", "to_version") for s in states]
        _append(db, "version.kept", str(row["number"]), {}, {"version": row, "experiences": experiences})


def _append(db: Database, kind: str, subject: str, data: dict[str, Any], state: dict[str, Any]) -> None:
    db.execute(
        f"INSERT INTO events (at, actor, kind, subject, data, state) VALUES ({NOW}, 'winnow', ?, ?, ?, ?)",
        [kind, subject, *(json.dumps(value, ensure_ascii=False) for value in (data, state))],
    )


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
