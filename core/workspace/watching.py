"""What a person who watches a run wants to know: what failed and why, who works on it, and what happened meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from core.job import ENDED, Job, later
from core.record import Record
from core.rollout import Event
from core.store import Store

MESSAGES = 200
"""Different messages that are read to find causes."""
MINUTE_S = 60.0
SILENT_S = 6.0
"""A worker beats each second; one that was not heard of for so long is said to be silent."""
Tone = Literal["", "good", "bad"]
TONES: dict[str, Tone] = {"done": "good", "failed": "bad"}

_CAUSES = (
    ("the endpoint was asked too often (429)", re.compile(r"asked too often|\b429\b", re.I)),
    ("the endpoint had trouble of its own (5xx)", re.compile(r"trouble of its own|\b5\d\d\b", re.I)),
    (
        "no answer in time",
        re.compile(r"did not answer within|time limit|timed? ?out|within .* seconds", re.I),
    ),
    ("no connection to the endpoint", re.compile(r"cannot be reached|connection to endpoint", re.I)),
    ("an answer that could not be read", re.compile(r"answered .*(?:JSON|empty|no |without)", re.I | re.S)),
    ("a prompt too long for the model", re.compile(r"does not fit the context", re.I)),
    ("a request that the endpoint refused", re.compile(r"refused the request", re.I)),
)
"""Names of causes, each with how the sentences of `core.llm.failure` and of the agent tell of it."""
_VARIES = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"|\d+")


class Cause(Record):
    """Rollouts of a run that broke off for the same reason."""

    name: str
    """In words; a message of its own kind where the cause is not known."""
    rollouts: int
    groups: int
    example: str
    """One of the messages."""
    rollout_id: str
    """Where it can be seen."""


class Told(Record):
    """One thing that happened to a run, in a sentence."""

    at: str
    tone: Tone = ""
    said: str


class Attendance(Record):
    """Who sees to a job now."""

    state: Literal["at work", "silent", "starting", "nobody"]
    """`silent`: its worker was not heard of for longer than it should."""
    heard_at: str | None = None
    taken_up: int = 0
    """How often a worker took it up."""


def causes(store: Store, run_id: str) -> list[Cause]:
    """What broke off rollouts of a run, grouped by cause, the most frequent first."""
    found: dict[str, Cause] = {}
    for row in store.runs.failures(run_id, MESSAGES):
        name = cause_of(row["message"])
        had = found.get(name)
        found[name] = Cause(
            name=name,
            rollouts=row["rollouts"] + (had.rollouts if had else 0),
            groups=row["groups"] + (had.groups if had else 0),
            example=had.example if had else row["message"],
            rollout_id=had.rollout_id if had else row["example"],
        )
    return sorted(found.values(), key=lambda cause: -cause.rollouts)


def cause_of(message: str) -> str:
    """The cause that a message tells of; messages that differ in numbers and quoted words alone have the same one.

    >>> cause_of("Endpoint a did not answer within 30 seconds.")
    'no answer in time'
    >>> cause_of("KeyError: 'total' in line 12") == cause_of("KeyError: 'sum' in line 7")
    True
    """
    for name, pattern in _CAUSES:
        if pattern.search(message):
            return name
    return _VARIES.sub("…", " ".join(message.split()))[:120]


def attendance(job: Job, now: str) -> Attendance:
    """Who sees to a job.

    Args:
        job: as it is stored.
        now: UTC, ISO 8601.
    """
    if job.state in (*ENDED, "paused"):
        return Attendance(state="nobody", taken_up=job.attempts)
    if not job.worker:
        return Attendance(state="starting", taken_up=job.attempts)
    heard = job.heard_at or ""
    silent = later(heard, SILENT_S) < now
    return Attendance(state="silent" if silent else "at work", heard_at=heard, taken_up=job.attempts)


def history(store: Store, job: Job) -> list[Told]:
    """What happened to a job, the oldest first."""
    told = [Told(at=job.created_at, said=f"{job.actor} asked for it.")]
    told += [line for event in store.events.newest(50, subject=job.id) for line in _asked(event)]
    for heard_at, at in job.losses:
        told.append(Told(at=heard_at, tone="bad", said="The worker stopped."))
        told.append(Told(at=at, tone="good", said="Another one took over; what was finished is kept."))
    if job.finished_at and job.state in ENDED:
        told.append(Told(at=job.finished_at, tone=TONES.get(job.state, ""), said=f"It was {job.state}."))
    return sorted(told, key=lambda line: line.at)  # what is of one second stays in this order


def _asked(event: Event) -> Iterator[Told]:
    words = {
        "job.paused": "paused it at once" if event.data.get("now") else "paused it",
        "job.resumed": "let it go on",
        "job.requeued": "put it back into the queue",
        "job.cancelled": "discarded it" if event.data.get("discard") else "cancelled it",
    }
    if event.kind in words:
        yield Told(at=event.at, said=f"{event.actor} {words[event.kind]}.")


def calls_a_minute(store: Store, run_id: str) -> int:
    """Requests that were sent for a run in the last minute."""
    return store.spending.calls_since(run_id, later(store.events.clock(), -MINUTE_S))
