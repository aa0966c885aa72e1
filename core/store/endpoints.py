"""Endpoints and their roles. No key is ever stored: an endpoint has the name of a variable."""

from __future__ import annotations

import json

from core.settings import Endpoint, Role
from core.store.database import Database
from core.store.events import Events


class Endpoints:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def save(self, endpoint: Endpoint, actor: str) -> None:
        """Add an endpoint or change the one of that name."""
        with self._database.writing():
            self._database.execute(
                "INSERT INTO endpoints VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET settings = ?2",
                endpoint.name,
                endpoint.canonical(),
            )
            self._events.append(actor, "endpoint.saved", endpoint.name, model=endpoint.model)

    def remove(self, name: str, actor: str) -> None:
        with self._database.writing():
            self._database.execute("DELETE FROM endpoints WHERE name = ?", name)
            self._database.execute("DELETE FROM roles WHERE endpoint = ?", name)
            self._events.append(actor, "endpoint.removed", name)

    def all(self) -> list[Endpoint]:
        rows = self._database.rows("SELECT settings FROM endpoints ORDER BY name")
        return [Endpoint(**json.loads(row["settings"])) for row in rows]

    def find(self, name: str) -> Endpoint | None:
        settings = self._database.value("SELECT settings FROM endpoints WHERE name = ?", name)
        return Endpoint(**json.loads(settings)) if settings else None

    def roles(self) -> dict[str, str]:
        """Endpoint names by role; a role that nobody set is absent."""
        return {
            row["role"]: row["endpoint"] for row in self._database.rows("SELECT * FROM roles ORDER BY role")
        }

    def set_role(self, role: Role, endpoint: str | None, actor: str) -> None:
        """Give a role to an endpoint, or to none."""
        with self._database.writing():
            self._database.execute("DELETE FROM roles WHERE role = ?", role)
            if endpoint is not None:
                self._database.insert("roles", {"role": role, "endpoint": endpoint})
            self._events.append(actor, "role.set", role, endpoint=endpoint)
