"""Recorded groups that nobody graded are uninformative for that reason; they were called failed."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS

REASON = "ungraded: nobody gave these attempts a reward"
UPDATE = """
UPDATE groups SET status = 'uninformative', reason = ?
WHERE status = 'failed' AND run_id IN (SELECT id FROM runs WHERE kind = 'recorded')
    AND EXISTS (SELECT 1 FROM rollouts r WHERE r.group_id = groups.id AND r.error IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM rollouts r WHERE r.group_id = groups.id AND r.error IS NULL
        AND (r.scores <> '{}' OR r.components ->> '$.recorded' IS NOT NULL)
    )
"""


@MIGRATIONS()
def m016_ungraded(db: Database) -> None:
    db.execute(UPDATE, [REASON])
