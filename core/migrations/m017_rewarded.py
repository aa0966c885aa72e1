"""A group keeps when its rewards changed last, so that what was drawn from it before can say so."""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS


@MIGRATIONS()
def m017_rewarded(db: Database) -> None:
    """`rewarded`: id of the newest line of the log at that moment; 0 = they are what they were at first.

    What changed before this upgrade is not known.
    """
    db.execute("ALTER TABLE groups ADD COLUMN rewarded INTEGER NOT NULL DEFAULT 0")
