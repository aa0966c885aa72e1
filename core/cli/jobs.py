"""`winnow jobs` and `winnow worker`."""

from __future__ import annotations

import signal

import click

from core.cli.desk import Desk, one_line, plural, table, verb
from core.job import Job
from core.jobs import Came


@click.group()
def jobs() -> None:
    """Background work. A job goes by its id (J7) or by the run that it works on (R3)."""


@verb(jobs, "list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
def list_jobs(desk: Desk, limit: int) -> None:
    """List jobs, the newest first."""
    found = desk.workspace.jobs.newest(limit)
    rows = [(j.id, j.subject, j.state, how_far(j) or "-", j.actor, j.created_at, j.error) for j in found]
    lines = table(rows, ("job", "run", "state", "progress", "by", "created", "why"))
    desk.answer(found, *(lines if found else ["No jobs yet: winnow run makes one."]))


@verb(jobs, "show")
@click.argument("name", metavar="JOB|RUN")
def show(desk: Desk, name: str) -> None:
    """Show one job: its state, how far it is, who holds it, what stopped it."""
    job = desk.workspace.jobs.find(name)
    lines = [
        f"{job.id} ({job.subject}) is {job.state}; taken up {plural(job.attempts, 'time')}, by {job.actor}."
    ]
    if where := how_far(job):
        lines.append(f"Progress: {where}.")
    if job.worker:
        lines.append(f"Held by {job.worker} until {job.lease_until}.")
    if job.error:
        lines.append(f"Why: {job.error}")
    desk.answer(job, *lines)


@verb(jobs, "pause")
@click.argument("name", metavar="JOB|RUN")
@click.option("--now", is_flag=True, help="Drop what is in flight; else it comes home first.")
def pause(desk: Desk, name: str, now: bool) -> None:
    """Start nothing new; `resume` goes on from there."""
    job = desk.workspace.jobs.pause(name, desk.who, now=now)
    _say(desk, job, "What is in flight comes home first." if job.state == "pausing" and not job.now else "")


@verb(jobs, "resume")
@click.argument("name", metavar="JOB|RUN")
def resume(desk: Desk, name: str) -> None:
    """Let paused work go on, in the background (other caps: winnow run --resume RUN --max-calls N)."""
    _say(desk, desk.workspace.jobs.resume(name, desk.who))


@verb(jobs, "cancel")
@click.argument("name", metavar="JOB|RUN")
@click.option(
    "--keep/--discard",
    default=True,
    show_default=True,
    help="Keep what was made so far, or take away its groups, rollouts and undecided proposals.",
)
def cancel(desk: Desk, name: str, keep: bool) -> None:
    """End work for good; what is in flight is dropped."""
    _say(desk, desk.workspace.jobs.cancel(name, desk.who, discard=not keep))


@verb(jobs, "requeue")
@click.argument("name", metavar="JOB|RUN")
def requeue(desk: Desk, name: str) -> None:
    """Take up again what failed, was paused or cancelled; what failed inside of it is made up for."""
    _say(desk, desk.workspace.jobs.requeue(name, desk.who))


@verb(None, "worker")
@click.option("--once", is_flag=True, help="End as soon as nothing is due.")
@click.option(
    "--idle-exit", type=click.FloatRange(min=0), metavar="S", help="End after S seconds without work."
)
def worker(desk: Desk, once: bool, idle_exit: float | None) -> None:
    """Do the background work of a workspace until told to end (Ctrl-C or SIGTERM; twice drops what is in flight).

    The app and `winnow run` start one by themselves where none runs. What is not done then waits for the next worker.
    """
    from core.worker import Leaving, Worker

    leaving = Leaving()
    came: list[Job] = []

    def told(one: Came) -> None:
        came.append(one.job)
        click.echo(f"{one.job.id} ({one.job.subject}) is {one.job.state}. {one.job.error}".rstrip(), err=True)

    with leaving.on(signal.SIGINT, signal.SIGTERM):
        Worker(desk.workspace, progress=desk.progress, told=told, leaving=leaving).serve(
            once=once, idle_exit_s=idle_exit
        )
    desk.answer(
        came, f"{plural(len(came), 'job')} worked on.", set_aside=any(j.state == "failed" for j in came)
    )


def how_far(job: Job) -> str:
    """`groups: 12 of 40`."""
    if not job.what:
        return ""
    return f"{job.what}: {job.done:,}" + (f" of {job.total:,}" if job.total else "")


def _say(desk: Desk, job: Job, more: str = "") -> None:
    desk.workspace.ensure_worker()
    line = f"{job.id} ({job.subject}) is {job.state}."
    desk.answer(job, " ".join(part for part in (line, more, one_line(job.error, 300)) if part))
