"""The worker of a workspace: one process at a time does its background work, whoever asked for it.

1. Who holds `locks/worker.lock` is the worker. The operating system takes the lock back however its holder ends, so
   work whose lease was given to a process of this host before is free once the lock was had.
2. `winnow worker` is the worker until it is told to end. `winnow run` is the worker for its own job where there is none
   and follows the one that there is otherwise. The app starts one in the background when something waits.
3. A worker lets go of the lock before it looks for the last time: whoever found it taken may rely on being seen to.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from core.errors import BusyError, StoppedError
from core.job import Job
from core.jobs import Came, carry_out
from core.ports import Progress, Wish, silent

if TYPE_CHECKING:
    from core.workspace import Workspace

POLL_S = 0.5
"""Seconds between two looks at the queue, or at a job that is followed."""
PATIENCE_S = 1.0
"""`alive` holds the lock for a moment: who wants it waits so long before it believes that it is taken."""
IDLE_EXIT_S = 60.0
"""A worker in the background ends after so many seconds without work."""
HELD_S = 5.0
"""Seconds until a job is tried again whose run is held by another process."""
RESTART_S = 15.0
"""Seconds until another worker is started in the place of one that ended badly."""

ROOT = Path(__file__).parents[1]
LAST_WORDS = 2_000
"""Characters of its log that are shown when a worker ended badly."""


class Leaving:
    """Ends a worker gracefully: at the first signal it finishes what is in flight, at the second it drops it."""

    def __init__(self) -> None:
        self._count = 0
        self._told = threading.Event()

    def wish(self) -> Wish:
        """`Wishes` of the worker itself."""
        return "go" if not self._count else "pause" if self._count == 1 else "now"

    def tell(self) -> None:
        self._count += 1
        self._told.set()

    def wait(self, seconds: float) -> None:
        """Do nothing for so long, or until told to end."""
        self._told.wait(seconds)

    @contextmanager
    def on(self, *signals: signal.Signals) -> Iterator[None]:
        """Be told by signals of the operating system; only in the main thread."""

        def told(_number: int, _frame: FrameType | None) -> None:
            self.tell()

        before = {each: signal.signal(each, told) for each in signals}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def identity() -> str:
    """Who this process is to the others: host, process id, and when it said so first."""
    return f"{platform.node() or 'localhost'} {os.getpid()} {_SINCE}"


_SINCE = f"{time.time():.3f}"


@contextmanager
def seat(folder: Path, patience_s: float = PATIENCE_S) -> Iterator[bool]:
    """Be the worker of a workspace; gives False where another process is."""
    lock = FileLock(_lock_file(folder))
    try:
        lock.acquire(timeout=patience_s)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def alive(folder: Path) -> bool:
    """Whether a process is the worker of a workspace."""
    with seat(folder, 0) as mine:
        return not mine


def _lock_file(folder: Path) -> Path:
    locks = folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    return locks / "worker.lock"


class Worker:
    """Does the background work of one workspace, a job at a time, in the order in which it was asked for.

    Args:
        workspace: whose work.
        progress: told how far the job at hand is.
        told: called with each attempt at a job that came home.
        leaving: when to end.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        progress: Progress = silent,
        told: Callable[[Came], None] = lambda came: None,
        leaving: Leaving | None = None,
    ) -> None:
        self._workspace = workspace
        self._progress = progress
        self._told = told
        self._leaving = leaving or Leaving()
        self._held: dict[str, float] = {}
        """Jobs whose run another process held, and when to try again (monotonic seconds)."""

    def serve(self, *, once: bool = False, idle_exit_s: float | None = None) -> int:
        """Do what is due, and what comes; gives the number of attempts.

        Args:
            once: end as soon as nothing is due.
            idle_exit_s: end after so many seconds without work; None = never.

        Raises:
            BusyError: another process is the worker of this workspace.
        """
        attempts = 0
        while True:
            with seat(self._workspace.folder) as mine:
                if not mine:
                    raise BusyError("Another worker is at work on this workspace; there is one at a time.")
                attempts += self._serve_seated(once=once, idle_exit_s=idle_exit_s)
            if once or self._leaving.wish() != "go" or not self._waiting():
                return attempts

    def _serve_seated(self, *, once: bool, idle_exit_s: float | None) -> int:
        attempts = 0
        since = time.monotonic()
        while self._leaving.wish() == "go":
            if came := self.one():
                attempts += 1
                self._told(came)
                since = time.monotonic()
            elif once or (
                idle_exit_s is not None and time.monotonic() - since >= idle_exit_s and not self._waiting()
            ):
                break
            else:
                self._leaving.wait(POLL_S)
        return attempts

    def one(self, only: str | None = None) -> Came | None:
        """Carry out the oldest job that is due, or the one that is named; None when there is none.

        To be called by who has the seat: work that another process of this host had is free.
        """
        queue, me = self._workspace.jobs, identity()
        tried = time.monotonic()
        held = [] if only else [job_id for job_id, until in self._held.items() if until > tried]
        job = queue.claim(me, lost=lambda job: _host(job.worker) == _host(me), only=only, but=held)
        if job is None:
            return None
        run = queue.subject(job.subject)
        came = carry_out(queue, job, run, me, progress=self._progress, leaving=self._leaving.wish)
        if isinstance(came.error, BusyError):
            self._held[job.id] = time.monotonic() + HELD_S
        return came

    def _waiting(self) -> bool:
        return any(job.state == "waiting" for job in self._workspace.jobs.due())


def _host(worker: str) -> str:
    return worker.rsplit(" ", 2)[0]


def attend(
    workspace: Workspace,
    job: Job,
    *,
    progress: Progress = silent,
    leaving: Leaving | None = None,
    following: Callable[[Job], None] = lambda job: None,
) -> Came:
    """See a job through: as its worker where there is none, else by following the one that there is.

    Args:
        workspace: whose job.
        job: which one.
        progress: told how far it is.
        leaving: when to end; what is not done then waits for the next worker.
        following: called once when another process turns out to be the worker.

    Raises:
        StoppedError: it is time to end.
    """
    leaving = leaving or Leaving()
    worker = Worker(workspace, progress=progress, leaving=leaving)
    told = False
    while leaving.wish() == "go":
        with seat(workspace.folder, 0) as mine:
            came = worker.one(job.id) if mine else None
        if came and workspace.jobs.ended(came.job):
            return came
        now = workspace.jobs.find(job.id)
        if not came and workspace.jobs.ended(now):
            return Came(now, workspace.jobs.subject(now.subject))
        if not mine and not told:
            following(now)
            told = True
        if now.what:
            progress(now.what, now.done, now.total)
        leaving.wait(POLL_S)
    raise StoppedError(f"{job.id} stopped; it goes on where it is as soon as a worker runs.")


@dataclass
class _Started:
    process: subprocess.Popen[bytes]
    at: float
    """Monotonic seconds."""


_started: dict[Path, _Started] = {}
"""Workers that this process started: asked for their end, so that none stays a zombie."""


def ensure(workspace: Workspace) -> None:
    """Start a worker in the background where something is due and none runs; it outlives this process."""
    folder = workspace.folder
    before = _started.get(folder)
    code = before.process.poll() if before else None
    if not workspace.jobs.due() or (before and code is None) or alive(folder):
        return
    if before and code and time.monotonic() - before.at < RESTART_S:
        return
    log = _log(folder)
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "core", "worker", "--idle-exit", f"{IDLE_EXIT_S:g}"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--workspace", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            start_new_session=True,
            creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
        )
    _started[folder] = _Started(process, time.monotonic())


def last_words(workspace: Workspace) -> str:
    """What the worker that this process started said last, where it ended badly; empty else."""
    started = _started.get(workspace.folder)
    if started is None or not started.process.poll():
        return ""
    try:
        return _log(workspace.folder).read_text("utf-8", "replace")[-LAST_WORDS:].strip()
    except OSError:
        return ""


def _log(folder: Path) -> Path:
    return folder / "logs" / "worker.log"
