"""Finished model calls, so that none is paid for twice."""

from __future__ import annotations

from collections.abc import Sequence

from core.store.database import Database
from core.store.events import Clock


class Calls:
    """Replies by key; the key is the hash of everything that was asked (DESIGN 3.6)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def get(self, key: str) -> str | None:
        """The reply as JSON, or None."""
        found: str | None = self._database.value("SELECT completion FROM calls WHERE key = ?", key)
        return found

    def put_many(self, entries: Sequence[tuple[str, str]]) -> None:
        """Keep replies as JSON, all in one transaction; one that is there already stays."""
        at = self._clock()
        with self._database.writing():
            self._database.executemany(
                "INSERT INTO calls VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
                [(key, completion, at) for key, completion in entries],
            )
