"""Settings of a workspace that the log keeps: each change with who made it and when; the newest one holds."""

from __future__ import annotations

from pydantic import JsonValue

from core.store import Store


class Logged:
    """One setting."""

    def __init__(self, store: Store, name: str, default: JsonValue = None) -> None:
        self._store = store
        self._subject = f"setting {name}"
        self._default = default

    def get(self) -> JsonValue:
        """What holds now."""
        newest = self._store.events.newest(1, subject=self._subject)
        return newest[0].data["to"] if newest else self._default

    def change(self, to: JsonValue, actor: str, **told: JsonValue) -> None:
        """Let something else hold; the same again leaves no line.

        Args:
            to: what holds from now on.
            actor: who says so.
            told: what a reader of the log is to know besides.
        """
        with self._store.writing():
            if (was := self.get()) != to:
                self._store.events.append(actor, "setting.changed", self._subject, **told, was=was, to=to)
