"""Background work in a line: what it is at, how far it is, how long it may take; it leads to its run or evaluation."""

from __future__ import annotations

from core.job import ENDED, Job
from core.workspace import Workspace
from pages.parts import frame, pace, progress
from pages.parts.safe import markup


def jobs(ws: Workspace) -> list[Job]:
    """What a worker has to see to now."""
    return [job for job in ws.jobs.due() if job.state not in ENDED]


def line(ws: Workspace, job: Job) -> None:
    """Draw one job."""
    rest = pace.left(ws.folder, job)
    content = markup(
        '<div class="w-job"><div class="top"><b>{subject}</b><span>{how_far}</span></div>'
        '{bar}<div class="rest">{rest}</div></div>',
        subject=job.subject,
        how_far=_how_far(job),
        bar=progress.bar(job.done, job.total, f"How far {job.subject} is"),
        rest=f"about {rest} left" if rest else _state(job),
    )
    target = "pages/prove/evaluation.py" if job.kind == "evaluation" else "pages/learn/run.py"
    frame.way(f"work_{job.id}", content, f"Open {job.subject}", target, id=job.subject)


def _how_far(job: Job) -> str:
    if job.state == "waiting" or not job.what:
        return "in the queue" if job.state == "waiting" else "starting"
    return f"{job.what} {job.done:,} of {job.total:,}" if job.total else job.what


def _state(job: Job) -> str:
    return {
        "waiting": "waits for a worker",
        "pausing": "pausing: what is in flight comes home",
        "cancelling": "being cancelled",
    }.get(job.state, "at work")
