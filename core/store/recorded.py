"""Recorded rollouts that came in: which attempt, task and group of a file stands for which of the workspace."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from pydantic import Field, JsonValue

from core.record import Record, canonical_json
from core.rollout import Rollout
from core.store.database import Database
from core.store.groups import Groups


class RecordedAttempt(Record):
    """Where a recorded rollout came from, and what the file said of it besides."""

    identity: str
    """Hash of its content: the same attempt is known when it comes again."""
    rollout_id: str
    group_key: str
    scope: str
    """The recorded run, or else the file, in which its number counts."""
    repeat: int | None
    own_id: str | None
    scores: dict[str, float | None] = Field(default_factory=dict)
    """All scores of the file, by its own names."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    source: str
    """What the import was called: the name of the file, as a rule."""
    file: str
    """Hash of the file, and of how it was read."""
    place: str
    """In the file."""


class Earlier(NamedTuple):
    """What is here of an attempt that comes again under its own id."""

    rollout: Rollout
    """Whole."""
    group_key: str
    scores: dict[str, float | None]


class RecordedAttempts:
    def __init__(self, database: Database, groups: Groups) -> None:
        self._database = database
        self._groups = groups

    def rollout_of(self, identity: str) -> str | None:
        """The rollout that an attempt became; None where it is new."""
        return self._text("SELECT rollout_id FROM recorded_attempts WHERE identity = ?", identity)

    def rollout_of_place(self, file: str, place: str) -> str | None:
        """The rollout that the attempt at a place of a file (by its hash) became."""
        return self._text(
            "SELECT rollout_id FROM recorded_attempts WHERE file = ? AND place = ?", file, place
        )

    def of_id(self, own_id: str) -> Earlier | None:
        """What the attempt with this id of the file's own became; None where it is new."""
        rollout_id = self.rollout_of_id(own_id)
        return None if rollout_id is None else self.earlier(rollout_id)

    def earlier(self, rollout_id: str) -> Earlier | None:
        """What is here of the attempt that became a rollout; None where it was not recorded elsewhere."""
        row = self._database.row(
            "SELECT rollout_id, group_key, scores FROM recorded_attempts WHERE rollout_id = ?", rollout_id
        )
        if row is None:
            return None
        return Earlier(self._groups.rollout(row["rollout_id"]), row["group_key"], json.loads(row["scores"]))

    def rollout_of_id(self, own_id: str) -> str | None:
        """The rollout that the attempt with this id of the file's own became."""
        return self._text("SELECT rollout_id FROM recorded_attempts WHERE own_id = ?", own_id)

    def group_key_of(self, rollout_id: str) -> str | None:
        """The key of the group that a rollout came into."""
        return self._text("SELECT group_key FROM recorded_attempts WHERE rollout_id = ?", rollout_id)

    def rollout_of_number(self, group_key: str, scope: str, repeat: int) -> str | None:
        """The rollout that the attempt with this number became."""
        return self._text(
            "SELECT rollout_id FROM recorded_attempts WHERE group_key = ? AND scope = ? AND repeat = ?",
            *(group_key, scope, repeat),
        )

    def task_of(self, key: str) -> str | None:
        """The id of the task here that a key stands for."""
        return self._text("SELECT task_id FROM recorded_tasks WHERE key = ?", key)

    def group_of(self, key: str) -> str | None:
        """The id of the group here that a key stands for."""
        return self._text("SELECT group_id FROM recorded_groups WHERE key = ?", key)

    def run_of(self, group_key: str) -> str | None:
        """The run that holds the group."""
        return self._text(
            "SELECT run_id FROM recorded_groups r JOIN groups g ON g.id = r.group_id WHERE r.key = ?",
            group_key,
        )

    def keep_task(self, key: str, task_id: str) -> None:
        """Inside an open transaction."""
        self._database.execute("INSERT OR IGNORE INTO recorded_tasks VALUES (?, ?)", key, task_id)

    def keep_group(self, key: str, group_id: str) -> None:
        """Inside an open transaction."""
        self._database.execute("INSERT OR IGNORE INTO recorded_groups VALUES (?, ?)", key, group_id)

    def keep(self, attempt: RecordedAttempt) -> None:
        """Inside an open transaction."""
        texts = {"scores": canonical_json(attempt.scores), "metadata": canonical_json(attempt.metadata)}
        self._database.insert("recorded_attempts", attempt.model_dump() | texts)

    def replace(self, attempt: RecordedAttempt) -> None:
        """Inside an open transaction: the rollout is now known by a later state of its attempt."""
        self._database.execute("DELETE FROM recorded_attempts WHERE rollout_id = ?", attempt.rollout_id)
        self.keep(attempt)

    def get(self, rollout_id: str) -> RecordedAttempt | None:
        """Where a rollout came from; None where it was not recorded elsewhere."""
        row = self._database.row("SELECT * FROM recorded_attempts WHERE rollout_id = ?", rollout_id)
        texts: dict[str, Any] = {}
        if row:
            texts = {"scores": json.loads(row["scores"]), "metadata": json.loads(row["metadata"])}
        return RecordedAttempt(**{**row, **texts}) if row else None

    def _text(self, sql: str, *parameters: object) -> str | None:
        value = self._database.value(sql, *parameters)
        return None if value is None else str(value)
