"""Groups of equal recorded rewards tell the number: 0 may be the best that there is, and was called all wrong."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS

UPDATE = """
UPDATE groups SET reason = 'all equal: reward ' || iif(reason = 'all right', '1', '0')
WHERE reason IN ('all right', 'all wrong') AND EXISTS (
    SELECT 1 FROM rollouts r WHERE r.group_id = groups.id AND r.components ->> '$.recorded' IS NOT NULL
)
"""


@MIGRATIONS()
def m018_no_right_or_wrong(db: Database) -> None:
    db.execute(UPDATE)
