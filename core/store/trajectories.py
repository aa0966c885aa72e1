"""Trajectories by themselves: one is opened only when somebody reads it."""

from __future__ import annotations

import hashlib

from core.errors import NotFoundError
from core.rollout import Rollout, Trajectory
from core.store.database import Database
from core.store.groups import Groups


class Trajectories:
    def __init__(self, database: Database, groups: Groups) -> None:
        self._database = database
        self._groups = groups

    def mark(self, rollout_id: str) -> str:
        """Another text whenever the trajectory is another one, by what is stored beside it; it is not read.

        Raises:
            NotFoundError: there is no such rollout.
        """
        row = self._database.row(
            "SELECT t.rowid AS place, length(t.body) AS bytes, r.duration_s, r.usage, r.answer,"
            " (SELECT max(id) FROM redactions) AS redacted"
            " FROM trajectories t JOIN rollouts r ON r.id = t.rollout_id WHERE t.rollout_id = ?",
            rollout_id,
        )
        if row is None:
            raise NotFoundError(f"There is no rollout {rollout_id!r} in this workspace.")
        return hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).hexdigest()

    def get(self, rollout_id: str) -> Trajectory:
        """The whole of it.

        Raises:
            NotFoundError: there is no such rollout.
        """
        return self._groups.rollout(rollout_id).trajectory

    def head(self, rollout_id: str) -> Rollout:
        """A rollout without its trajectory, but for the beginning of its answer and why it ended.

        Raises:
            NotFoundError: there is no such rollout.
        """
        return self._groups.rollout(rollout_id, trajectory=False)

    def origin(self, run_id: str) -> tuple[str, str]:
        """The kind of a run, and where its recorded rollouts came from or why it failed."""
        row = self._database.row("SELECT kind, note FROM runs WHERE id = ?", run_id)
        return (row["kind"], row["note"]) if row else ("", "")
