"""Where a workspace stands, in counts: read by every page, so no query here grows with the number of rollouts.

The one exception is the number of rollouts itself, which only Home asks for; SQLite counts it on an index.
"""

from __future__ import annotations

from core.record import Record
from core.rollout import RunStatus
from core.store.database import Database


class Margin(Record):
    """What stands beside every page."""

    version: int
    """The newest version of the library."""
    experiences: int
    """Live experiences in it."""
    waiting: int
    """Proposals that nobody decided on, those that were put off included."""
    staged: int
    """Proposals that are approved and not yet published."""


class Standing:
    def __init__(self, database: Database) -> None:
        self._database = database

    def margin(self) -> Margin:
        row = self._database.row(
            "SELECT number AS version, size AS experiences,"
            " (SELECT count(*) FROM proposals WHERE status IN ('proposed', 'deferred')) AS waiting,"
            " (SELECT count(*) FROM proposals WHERE status = 'approved') AS staged"
            " FROM versions ORDER BY number DESC LIMIT 1"
        )
        assert row is not None  # version 0 was always there
        return Margin(**row)

    def newest_run(self) -> tuple[str, RunStatus] | None:
        """Id and status of the newest run that is no arm of an evaluation."""
        row = self._database.row(
            "SELECT id, status FROM runs WHERE kind <> 'evaluated' ORDER BY number DESC LIMIT 1"
        )
        return (row["id"], row["status"]) if row else None

    def packs(self) -> int:
        """How often a pack was exported."""
        return int(self._database.value("SELECT count(*) FROM events WHERE kind = 'pack.exported'"))

    def empty(self) -> bool:
        """Whether nothing was ever done here: no task, no run, no proposal."""
        return not self._database.value(
            "SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM proposals)"
        )
