"""One job from its claim to its end. Whatever goes wrong becomes a state of the job and a sentence on it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import BusyError, ModelError, StoppedError, WinnowError
from core.job import Job
from core.jobs.heart import BEAT_S, Heart
from core.jobs.queue import FAULT, Queue, Subject
from core.jobs.states import Ending
from core.ports import Progress, Wish, go, silent


@dataclass(frozen=True)
class Came:
    """What came of an attempt at a job."""

    job: Job
    run: Subject | None = None
    """Where it came through: done, or waiting for a person."""
    error: Exception | None = None
    """Why it did not."""


def carry_out(
    queue: Queue,
    job: Job,
    run: Subject,
    worker: str,
    *,
    progress: Progress = silent,
    leaving: Callable[[], Wish] = go,
    beat_s: float = BEAT_S,
) -> Came:
    """Work on a job that was claimed, until it is done or stops; or cancel it, where that is wanted.

    Args:
        queue: where the job is.
        job: as it was claimed.
        run: what it works on, a run or an evaluation.
        worker: who claimed it.
        progress: shown to whoever watches this process.
        leaving: whether the worker is to end: "pause" finishes what is in flight, "now" drops it.
        beat_s: seconds between two heartbeats.
    """
    came = Came(job)
    ending: Ending = "stopped"
    if job.state != "cancelling":
        with Heart(queue, job, worker, leaving=leaving, shown=progress, beat_s=beat_s) as heart:
            try:
                done = queue.carry_on(job, run, heart.progress, heart.wish)
                came, ending = Came(job, run=done), "held up" if done.status == "review" else "done"
            except (
                KeyboardInterrupt
            ):  # whoever sits before it wants it to stop, and not to go on behind their back
                queue.end(job.id, worker, "held up", "Stopped by Ctrl-C.")
                raise
            except Exception as e:  # noqa: BLE001  # nobody awaits a job: whatever it was is written on it
                came, ending = Came(job, error=e), _ending(e)
    why = _sentence(came)
    now = queue.end(job.id, worker, ending, why)
    if now.state == "cancelling" and now.worker == worker:
        return _cancel(queue, now, worker)
    return Came(now, came.run, came.error)


def _cancel(queue: Queue, job: Job, worker: str) -> Came:
    try:
        queue.carry_off(job)
    except BusyError as e:  # the job stays as it is: the lease runs out, and it is tried again
        return Came(job, error=e)
    except Exception as e:  # noqa: BLE001  # as above
        return Came(queue.end_cancel(job, worker, refused=_said(e)), error=e)
    return Came(queue.end_cancel(job, worker))


def _ending(error: Exception) -> Ending:
    match error:
        case StoppedError():
            return "stopped"
        case BusyError():
            return "yielded"
        case ModelError():
            return "held up"
        case _:
            return "refused"


def _sentence(came: Came) -> str:
    if came.error is not None:
        return "" if isinstance(came.error, StoppedError) else _said(came.error)
    if came.run and came.run.status == "review":
        return "It waits for you: decide on its proposals and publish them, then resume."
    return ""


def _said(error: Exception) -> str:
    if isinstance(error, WinnowError):
        return str(error)
    traceback.print_exception(error, file=sys.stderr)
    return (
        f"{FAULT} ({type(error).__name__}: {error}); please report it. The log of the worker has the details."
    )
