"""How a job goes from state to state. No other place changes a state.

    waiting     a worker takes it up -> running
                pause -> paused; cancel -> cancelling
    running     its work is done -> done; cannot be done -> failed
                stopped by itself (endpoint, cap, a gate that waits for a person), or by Ctrl-C -> paused
                its worker is asked to end, or the run is held by somebody else -> waiting
                pause -> pausing; cancel -> cancelling
    pausing     as running, but what stops goes to paused; resume -> running; cancel -> cancelling
    paused      resume -> waiting; cancel -> cancelling
    cancelling  cancelled; where that is refused -> paused; where the work got done before -> done
    failed, cancelled (unless it was discarded)
                requeue -> waiting
    done        nothing; what failed inside of the work is made up for by a new job

Who holds a job has a lease on it, and renews it. Work whose lease is void (ran out, or its holder is known to be dead)
is taken up by the next worker as it is: running goes on, pausing is paused, cancelling is cancelled. A holder that
lost its lease changes nothing any more. Commands are idempotent: what is so already stays so.
"""

from __future__ import annotations

from typing import Literal

from core.errors import InputError
from core.job import ENDED, Job

Ending = Literal["done", "stopped", "yielded", "held up", "refused"]
"""How an attempt came home: it is done; stopped because somebody wished so; yielded, since its worker is to end or the
run is held by another process; held up, since going on now would be in vain; refused, since it cannot work at all."""


def take_up(job: Job, worker: str, lease_until: str) -> Job:
    """A worker takes a job that is due, under a lease; one that was to be paused is paused."""
    if job.state == "pausing":
        return _let_go(job, state="paused")
    if job.state not in ("waiting", "running", "cancelling"):
        raise ValueError(f"{job.id} is {job.state}: nothing to take up")
    state = "running" if job.state == "waiting" else job.state
    return job.model_copy(
        update={
            "state": state,
            "worker": worker,
            "lease_until": lease_until,
            "attempts": job.attempts + 1,
            "error": "",
        }
    )


def holds(job: Job, worker: str) -> bool:
    return job.worker == worker and job.state in ("running", "pausing", "cancelling")


def pause(job: Job, *, now: bool = False) -> Job:
    """Somebody wants a job to pause.

    Raises:
        InputError: it has ended, or is being cancelled.
    """
    match job.state:
        case "waiting":
            return _let_go(job, state="paused")
        case "running" | "pausing":
            return job.model_copy(update={"state": "pausing", "now": now or job.now})
        case "paused":
            return job
    raise InputError(f"{job.id} is {job.state}; only work that waits or runs can be paused.")


def resume(job: Job) -> Job:
    """Somebody wants a paused job to go on.

    Raises:
        InputError: it is not paused, nor about to be.
    """
    match job.state:
        case "paused":
            return _let_go(job, state="waiting", error="")
        case "pausing":
            return job.model_copy(update={"state": "running", "now": False})
        case "waiting" | "running":
            return job
    hint = " `winnow jobs requeue` takes it up again." if job.state in ("failed", "cancelled") else ""
    raise InputError(f"{job.id} is {job.state}; only paused work can be resumed.{hint}")


def cancel(job: Job, *, discard: bool) -> Job:
    """Somebody wants a job to end; what it holds in flight is dropped.

    Raises:
        InputError: it has ended already, or is being cancelled the other way.
    """
    if job.state == "cancelled" and job.discard == discard:
        return job
    if job.state in ENDED:
        raise InputError(f"{job.id} is {job.state} already; there is nothing to cancel.")
    if job.state == "cancelling" and job.discard != discard:
        raise InputError(f"{job.id} is being cancelled already; wait for it to end.")
    return job.model_copy(update={"state": "cancelling", "now": True, "discard": discard})


def requeue(job: Job) -> Job:
    """Somebody wants a job that stopped for good to be taken up again.

    Raises:
        InputError: it has not stopped, or what it made was discarded.
    """
    if job.state == "cancelled" and job.discard:
        raise InputError(f"What {job.id} had made was discarded; start {job.subject} anew with `winnow run`.")
    if job.state not in ("failed", "cancelled", "paused"):
        raise InputError(f"{job.id} is {job.state}; only failed, cancelled or paused work can be requeued.")
    return _let_go(job, state="waiting", error="", finished_at=None)


def come_home(job: Job, ending: Ending, why: str, at: str) -> Job:
    """An attempt ended, and nobody wants the job cancelled (see `cancelled`)."""
    match ending:
        case "done":
            return _let_go(job, state="done", error="", finished_at=at)
        case "refused":
            return _let_go(job, state="failed", error=why, finished_at=at)
        case "held up":
            return _let_go(job, state="paused", error=why)
        case "stopped" | "yielded":
            return _let_go(job, state="paused" if job.state == "pausing" else "waiting", error=why)


def cancelled(job: Job, at: str) -> Job:
    return _let_go(job, state="cancelled", error="", finished_at=at)


def not_cancelled(job: Job, why: str) -> Job:
    """A cancellation was refused: nothing was taken away, and nothing goes on by itself."""
    return _let_go(job, state="paused", error=why, discard=False)


def _let_go(job: Job, **changes: object) -> Job:
    return job.model_copy(update={"worker": "", "lease_until": None, "now": False, **changes})
