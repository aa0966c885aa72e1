"""How tools were used: by rollout, tool and error message, so that no trajectory is unpacked to count it.

A row with an empty `error` holds the calls that did not fail with a message. Steps lie in trajectories, which are
compressed; these rows are derived from them, and go with their rollout. No foreign text is part of a key: a redaction
may make two messages the same.
"""

from __future__ import annotations

import json
import zlib

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

MESSAGE = 200
"""Characters of an error message that are kept here; the whole one is in the trajectory."""

SCHEMA = """
CREATE TABLE tool_use (
    rollout_id TEXT NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE, run_id TEXT NOT NULL, tool TEXT NOT NULL,
    error TEXT NOT NULL, first_step INTEGER NOT NULL, calls INTEGER NOT NULL, succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL, unknown INTEGER NOT NULL, retries INTEGER NOT NULL, timed INTEGER NOT NULL,
    duration_s REAL NOT NULL
) STRICT;
CREATE INDEX tool_use_by_rollout ON tool_use (rollout_id);
CREATE INDEX tool_use_by_run ON tool_use (run_id, tool);
CREATE INDEX rollouts_by_reward ON rollouts (group_id, reward);
"""
COLUMNS = "rollout_id, run_id, tool, error, first_step, calls, succeeded, failed, unknown, retries, timed, duration_s"
INSERT = f"INSERT INTO tool_use ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@MIGRATIONS()
def m010_tool_use(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
    done = db.execute(
        "SELECT r.id, g.run_id FROM rollouts r JOIN groups g ON g.id = r.group_id WHERE r.steps > 0"
    ).fetchall()
    for rollout_id, run_id in done:  # one body at a time: a run may hold gigabytes of them
        for (body,) in db.execute(
            "SELECT body FROM trajectories WHERE rollout_id = ?", [rollout_id]
        ).fetchall():
            steps = json.loads(zlib.decompress(body)).get("steps", [])
            db.conn.executemany(INSERT, [(rollout_id, run_id, *use) for use in counted(steps)])


def counted(steps: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """The rows of one rollout's steps, without their ids."""
    rows: dict[tuple[str, str], list[float]] = {}
    for number, step in enumerate(steps, 1):
        success, error, took = step.get("success"), step.get("error"), step.get("duration_s")
        key = (str(step["tool"]), str(error)[:MESSAGE] if error else "")
        row = rows.setdefault(key, [number, 0, 0, 0, 0, 0, 0, 0.0])
        row[1] += 1
        row[2 if success is True else 3 if success is False or error else 4] += 1
        row[5] += int(str(step.get("retries") or 0))
        if isinstance(took, int | float):
            row[6] += 1
            row[7] += took
    return [(tool, error, *row) for (tool, error), row in rows.items()]
