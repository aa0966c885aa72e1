"""Job: work that a worker process does in the background, and that any process may watch, pause or cancel."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from core.record import Record

JobKind = Literal["run"]
"""`run`: do what is missing of a run (its id is the subject)."""

JobState = Literal["waiting", "running", "pausing", "paused", "cancelling", "cancelled", "done", "failed"]
"""waiting -> running -> done | failed; running -> pausing -> paused -> waiting (resume); paused also where its endpoint
cannot be used, a cap is reached or a gate waits for a person; waiting, running, pausing, paused -> cancelling ->
cancelled; failed, cancelled -> waiting (requeue). All transitions are in `core.jobs.states`. A job whose lease ran out
is taken up again by the next worker."""

ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")


class Job(Record):
    """One piece of background work."""

    id: str
    """`J7`."""
    kind: JobKind = "run"
    subject: str
    """What it works on: the id of a run."""
    state: JobState = "waiting"
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What the work is called with besides its subject, such as other caps."""
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
