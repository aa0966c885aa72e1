"""When the rewards of a group changed last: what was drawn from it before is compared with that."""

from __future__ import annotations

from core.rollout import Group
from core.store.database import Database


def mark_rewarded(database: Database, group: Group) -> None:
    """Keep that the rewards of a group are others from now on, where they are; inside a transaction, before the write.

    Attempts that come to a group change its rewards, too. What is written for the first time changes nothing.
    """
    rows = database.rows("SELECT id, reward, advantage FROM rollouts WHERE group_id = ?", group.id)
    before = {row["id"]: (row["reward"], row["advantage"]) for row in rows}
    if before and before != {r.id: (r.reward, r.advantage) for r in group.rollouts}:
        database.execute(
            "UPDATE groups SET rewarded = (SELECT coalesce(max(id), 0) FROM events) WHERE id = ?", group.id
        )
