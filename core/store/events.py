"""The append-only log: who did what, to what, when. Triggers refuse changes to it."""

from __future__ import annotations

import json
from collections.abc import Callable

from pydantic import JsonValue

from core.record import canonical_json
from core.rollout import Event
from core.store.database import Database

Clock = Callable[[], str]
"""Gives the time now, UTC, ISO 8601."""


class Events:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.clock = clock

    def append(self, actor: str, kind: str, subject: str, **data: JsonValue) -> None:
        """Add a line, inside the transaction of what it tells of."""
        row = {
            "at": self.clock(),
            "actor": actor,
            "kind": kind,
            "subject": subject,
            "data": canonical_json(data),
        }
        self._database.insert("events", row)

    def newest(
        self, limit: int = 50, *, subject: str | None = None, before: int | None = None
    ) -> list[Event]:
        """The newest lines first, of one subject if named, older than event `before` if named."""
        rows = self._database.rows(
            "SELECT * FROM events WHERE (?1 IS NULL OR subject = ?1) AND (?2 IS NULL OR id < ?2)"
            " ORDER BY id DESC LIMIT ?3",
            subject,
            before,
            limit,
        )
        return [Event(**{**row, "data": json.loads(row["data"])}) for row in rows]
