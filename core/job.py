"""Job: work that a worker process does in the background, and that any process may watch, pause or cancel."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field, JsonValue

from core.record import Record

JobKind = Literal["run", "evaluation"]
"""`run`, `evaluation`: do what is missing of a run or of an evaluation (its id is the subject)."""

JobState = Literal["waiting", "running", "pausing", "paused", "cancelling", "cancelled", "done", "failed"]
"""waiting -> running -> done | failed; running -> pausing -> paused -> waiting (resume); paused also where its endpoint
cannot be used, a cap is reached or a gate waits for a person; waiting, running, pausing, paused -> cancelling ->
cancelled; failed, cancelled -> waiting (requeue). All transitions are in `core.jobs.states`. A job whose lease ran out
is taken up again by the next worker."""

ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")

LEASE_S = 30.0
"""Work that was not heard of for so long is taken up by another worker."""
LOST = "lost"
LOSSES = 20
"""Losses of workers that a job remembers."""


class Job(Record):
    """One piece of background work."""

    id: str
    """`J7`."""
    kind: JobKind = "run"
    subject: str
    """What it works on: the id of a run (`R3`) or of an evaluation (`EV3`)."""
    state: JobState = "waiting"
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What the work is called with besides its subject, such as other caps; and when workers of it fell silent."""
    now: bool = False
    """Whether a pause or a cancellation drops what is in flight."""
    discard: bool = False
    """Whether a cancellation takes away what the work had made so far."""
    worker: str = ""
    """Who holds its lease: host, process id and start time; empty where nobody does."""
    lease_until: str | None = None
    """UTC, ISO 8601; a worker that is alive renews it with each heartbeat."""
    attempts: int = 0
    """How often a worker took it up."""
    what: str = ""
    """What it is at: "rollouts"."""
    done: int = 0
    total: int = 0
    """0 = not known."""
    error: str = ""
    """Why it failed, paused by itself, or waits."""
    actor: str = ""
    created_at: str = ""
    finished_at: str | None = None

    @property
    def heard_at(self) -> str | None:
        """When its worker was heard of last; None where nobody holds it."""
        return later(self.lease_until, -LEASE_S) if self.lease_until else None

    @property
    def losses(self) -> list[tuple[str, str]]:
        """When workers that had it fell silent, each with the time when another one saw to it; the oldest first."""
        found = self.options.get(LOST)
        return (
            [(str(one[0]), str(one[1])) for one in found if isinstance(one, list)]
            if isinstance(found, list)
            else []
        )

    def with_loss(self, heard_at: str, at: str) -> Job:
        """The job, remembering that its worker was heard of last at `heard_at`, and missed at `at`."""
        lost: list[JsonValue] = [[*one] for one in (*self.losses, (heard_at, at))[-LOSSES:]]
        return self.model_copy(update={"options": {**self.options, LOST: lost}})


def later(at: str, seconds: float) -> str:
    """So many seconds after a time of the log (UTC, ISO 8601)."""
    return (datetime.fromisoformat(at) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
