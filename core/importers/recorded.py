"""Rollouts that were recorded elsewhere, and the port of the files that hold them."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field, JsonValue

from core.importers.source import Rejected
from core.record import Record
from core.rollout import Score, Task, Trajectory, Usage


class Recorded(Record):
    """One attempt at one task, as a file tells it."""

    task: Task
    replicate: int = Field(ge=0)
    """Its own number, else the first free one for its task and model, in the order of the file."""
    model: str = ""
    trajectory: Trajectory = Trajectory()
    scores: dict[str, Score] = Field(default_factory=dict)
    reward: float | None = None
    """As the file gives it; None where it gives none: the scores, or else the task's verifier, decide later."""
    error: str | None = None
    usage: Usage = Usage()
    duration_s: float | None = None
    """Seconds."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    line: int = 0
    """Where in the file it begins."""


class RecordedFile(Record):
    """What was read of a file of rollouts."""

    format: str
    rollouts: tuple[Recorded, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    content_hash: str
    """SHA-256 of the file, 64 hex digits: the same file is known when it comes again."""


class TraceImporter(Protocol):
    """Reads one format of recorded rollouts."""

    def recognises(self, data: bytes, name: str) -> bool:
        """Whether this is a file of this format, by its content first. Cheap; never raises."""

    def read(self, data: bytes, name: str) -> RecordedFile:
        """Read all rollouts; a bad one is set aside with its line and never stops the others.

        Raises:
            InputError: the file as a whole cannot be read.
        """
