"""Background work on disk. What states mean and how they follow each other is `core.jobs`' business."""

from __future__ import annotations

import json

from pydantic import JsonValue

from core.errors import NotFoundError
from core.job import ENDED, Job, JobKind
from core.record import canonical_json
from core.store.database import Database, Row
from core.store.events import Clock
from core.store.lasting import given

_OPEN = f"state NOT IN {ENDED!r}"


class Jobs:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.clock = clock

    def add(self, kind: JobKind, subject: str, options: dict[str, JsonValue], actor: str) -> Job:
        """Write down new work, which waits."""
        with self._database.writing():
            there = self._database.value("SELECT coalesce(max(number), 0) FROM jobs")
            number = 1 + max(there, given(self._database, "jobs"))
            row = {
                "id": f"J{number}",
                "number": number,
                "kind": kind,
                "subject": subject,
                "state": "waiting",
                "options": canonical_json(options),
                "actor": actor,
                "created_at": self.clock(),
            }
            self._database.insert("jobs", row)
        return self.get(f"J{number}")

    def save(self, job: Job) -> Job:
        """Put a job in the place of what it was, inside the transaction that read it."""
        row = job.model_dump(exclude={"id"}) | {"options": canonical_json(job.options)}
        columns = ", ".join(f"{name} = ?" for name in row)
        self._database.execute(f"UPDATE jobs SET {columns} WHERE id = ?", *row.values(), job.id)
        return job

    def get(self, job_id: str) -> Job:
        """One job.

        Raises:
            NotFoundError: there is no such job.
        """
        row = self._database.row("SELECT * FROM jobs WHERE id = ?", job_id)
        if row is None:
            raise NotFoundError(
                f"There is no job {job_id!r} in this workspace; `winnow jobs list` shows them."
            )
        return _job(row)

    def of(self, subject: str) -> Job | None:
        """The newest job that works, or worked, on something."""
        row = self._database.row("SELECT * FROM jobs WHERE subject = ? ORDER BY number DESC LIMIT 1", subject)
        return _job(row) if row else None

    def open_of(self, subject: str) -> Job | None:
        """The job on something that has not ended; there is at most one."""
        row = self._database.row(f"SELECT * FROM jobs WHERE subject = ? AND {_OPEN}", subject)
        return _job(row) if row else None

    def newest(self, limit: int = 50) -> list[Job]:
        rows = self._database.rows("SELECT * FROM jobs ORDER BY number DESC LIMIT ?", limit)
        return [_job(row) for row in rows]

    def before(self, job: Job) -> int:
        """How many jobs that a worker has to see to come before one."""
        return int(
            self._database.value(
                f"SELECT count(*) FROM jobs WHERE {_OPEN} AND state <> 'paused'"
                " AND number < (SELECT number FROM jobs WHERE id = ?)",
                job.id,
            )
        )

    def due(self) -> list[Job]:
        """What a worker has to see to, the oldest first: all that has neither ended nor is paused."""
        rows = self._database.rows(f"SELECT * FROM jobs WHERE {_OPEN} AND state <> 'paused' ORDER BY number")
        return [_job(row) for row in rows]


def _job(row: Row) -> Job:
    del row["number"]
    return Job(
        **{**row, "options": json.loads(row["options"]), **{k: bool(row[k]) for k in ("now", "discard")}}
    )
