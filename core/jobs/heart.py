"""What keeps a job in the hands of its worker while it works: leases renewed, progress told, wishes heard."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Self

from core.job import Job
from core.jobs.queue import Queue
from core.ports import Progress, Wish, silent

BEAT_S = 1.0
"""Seconds between two heartbeats: as long as a pause takes to be heard, at most."""


class Heart:
    """Beats in a thread of its own, so that neither a long call nor a busy loop looks like death.

    Args:
        queue: where the job is.
        job: which one is held.
        worker: who holds it.
        leaving: what its worker wants; "go" while it means to stay.
        shown: told of progress too, at once.
        beat_s: seconds between two heartbeats.
    """

    def __init__(
        self,
        queue: Queue,
        job: Job,
        worker: str,
        *,
        leaving: Callable[[], Wish],
        shown: Progress = silent,
        beat_s: float = BEAT_S,
    ) -> None:
        self._queue = queue
        self._job_id = job.id
        self._worker = worker
        self._leaving = leaving
        self._shown = shown
        self._beat_s = beat_s
        self._at: tuple[str, int, int] = (job.what, job.done, job.total)
        self._heard: Wish = _wish_of(job)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name=f"heart of {job.id}", daemon=True)

    def progress(self, what: str, done: int, total: int) -> None:
        """A `Progress`: remembered, and written down with the next heartbeat."""
        self._at = (what, done, total)
        self._shown(what, done, total)

    def wish(self) -> Wish:
        """A `Wishes`: what people want of the job, or what its worker wants."""
        leaving = self._leaving()
        return leaving if self._heard == "go" or leaving == "now" else self._heard

    def beat(self) -> None:
        """Renew the lease and hear what people want; a job that was lost is dropped."""
        job = self._queue.beat(self._job_id, self._worker, self._at)
        self._heard = _wish_of(job) if job else "now"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._try_to_beat()  # how far it came is not lost

    def _beat_on(self) -> None:
        while not self._stop.wait(self._beat_s):
            self._try_to_beat()

    def _try_to_beat(self) -> None:
        try:
            self.beat()
        except Exception as e:  # noqa: BLE001  # the disk is full, say: the next beat makes up for it, or the lease runs out
            traceback.print_exception(e, file=sys.stderr)


def _wish_of(job: Job) -> Wish:
    match job.state:
        case "running":
            return "go"
        case "pausing":
            return "now" if job.now else "pause"
    return "now"
