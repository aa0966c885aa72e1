"""Background work on the screen: how far it is, and what a person can want of it.

Model calls never run in the web process: a worker does them, and the app makes sure that one runs. Whatever is asked
here is written down first, so it survives the tab, the app and the worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from core.job import ENDED, Job
from core.rollout import Run
from core.settings import RunConfig
from core.workspace import Workspace
from pages.parts import frame, safe, session, words
from pages.parts.guard import red_line

FIRST_GUESS_S = 5.0
"""No time left is guessed before work was watched for so long."""

_pace: dict[tuple[str, str, str], tuple[float, int]] = {}
"""When this process first saw a job at something (monotonic seconds), and how much was done by then."""


def active(job: Job | None) -> bool:
    """Whether something happens to a job by itself."""
    return job is not None and job.state not in (*ENDED, "paused")


def newest_by_run(ws: Workspace, limit: int = 1000) -> dict[str, Job]:
    """The newest job of each run."""
    return {job.subject: job for job in reversed(ws.jobs.newest(limit))}


def progress(ws: Workspace, job: Job) -> None:
    """One line: what the work is at, and how long it may take."""
    if job.state == "waiting":
        before = [j for j in ws.jobs.due() if int(j.id[1:]) < int(job.id[1:])]
        frame.note(
            f"It waits for {words.plural(len(before), 'job')} before it."
            if before
            else "A worker is about to start."
        )
        return
    if not job.what:
        return
    how_far = f"{job.what}: {job.done:,} of {job.total:,}" if job.total else f"{job.what}: {job.done:,}"
    left = _left(ws, job)
    frame.note(f"{how_far[:1].upper()}{how_far[1:]}{f' · about {left} left' if left else ''}")


def _left(ws: Workspace, job: Job) -> str:
    key = (str(ws.folder), job.id, job.what)
    since, before = _pace.setdefault(key, (time.monotonic(), job.done))
    watched = time.monotonic() - since
    if not job.total or job.done <= before or watched < FIRST_GUESS_S:
        return ""
    seconds = watched / (job.done - before) * (job.total - job.done)
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def controls(ws: Workspace, run: Run, job: Job | None) -> None:
    """What can be wanted of a run now."""
    state = job.state if job else ""
    name = job.id if job else ""
    with st.container(horizontal=True, vertical_alignment="center", key="run_controls"):
        if state in ("waiting", "running") and _button("Pause", "run_pause", "pause", PAUSE):
            _do(lambda: ws.jobs.pause(name, session.me()))
        if state == "pausing" and _button("Keep going", "run_keep_going", "play_arrow"):
            _do(lambda: ws.jobs.resume(name, session.me()))
        if (state == "running" or (job and state == "pausing" and not job.now)) and _button(
            "Pause now", "run_pause_now", "stop_circle", PAUSE_NOW
        ):
            _do(lambda: ws.jobs.pause(name, session.me(), now=True))
        if run.status == "review":
            if _button("Review proposals", "run_to_review", "rate_review", primary=True):
                st.switch_page("pages/review/review.py")
            if _button("Go on", "run_resume", "play_arrow"):
                _enqueue(ws, run)
        elif state in ("failed", "cancelled") and job:
            if not job.discard and _button("Requeue", "run_requeue", "replay", primary=True):
                _do(lambda: ws.jobs.requeue(name, session.me()))
        elif run.status not in ("done", "failed") and not active(job):
            label = (
                "Resume" if job or run.status == "running" or run.tally.waiting < run.tally.total else "Start"
            )
            if _button(label, "run_resume", "play_arrow", primary=True):
                _enqueue(ws, run)
        if state not in ("", "cancelling", *ENDED):
            _cancel(ws, name)


PAUSE = "Nothing new starts; calls in flight come home and are kept."
PAUSE_NOW = "Calls in flight are dropped; they are made again on resuming."


def caps(run: Run, job: Job | None) -> RunConfig:
    """The configuration of a run under the caps that its job has now."""
    found = job.options.get("caps") if job else None
    return RunConfig.read({**run.config.model_dump(), **(found if isinstance(found, dict) else {})})


def other_caps(ws: Workspace, run: Run, job: Job) -> None:
    """Resume under other caps, where work paused because of them."""
    now = caps(run, job)
    with st.form("run_caps", border=False):
        one, two, three = st.columns(3)
        calls = one.number_input(
            "Calls, at most", 0, None, now.max_calls, key="caps_calls", placeholder="no cap"
        )
        tokens = two.number_input(
            "Tokens, at most", 0, None, now.max_tokens_total, key="caps_tokens", placeholder="no cap"
        )
        money = three.number_input(
            "US dollars, at most", 0.0, None, now.max_cost_usd, key="caps_money", placeholder="no cap"
        )
        if st.form_submit_button("Resume under these caps", key="caps_resume"):
            wanted = now.model_copy(
                update={"max_calls": calls, "max_tokens_total": tokens, "max_cost_usd": money}
            )
            _do(lambda: ws.jobs.resume(job.id, session.me(), wanted))


def trouble(ws: Workspace, run: Run, job: Job | None) -> None:
    """Why work stands still, in one red line; and what the worker said last, where it ended badly."""
    if job and job.error and run.status != "review" and not active(job):
        red_line(job.error)
    if active(job) and (said := ws.worker_trouble()):
        red_line("The worker in the background ended badly; it is started again.")
        with st.expander("What it said last"):
            safe.exact(said)


def load_sample(workspace: Workspace) -> None:
    """Load the sample project and draw the page anew; it asks no model."""
    with st.spinner("Loading the sample project and counting its evidence …"):
        done = session.attempt(lambda: workspace.load_sample(session.me()), "The sample project is loaded.")
    if done:
        st.rerun()


def _cancel(ws: Workspace, name: str) -> None:
    with st.popover("Cancel", icon=":material/close:"):
        frame.note("Either way nothing of it goes on, and calls in flight are dropped.")
        if st.button("Cancel, keep what it made", key="run_cancel_keep", width="stretch"):
            _do(lambda: ws.jobs.cancel(name, session.me()))
        sure = st.checkbox(
            "Take away its finished groups, and the proposals that nobody decided on", key="run_discard_sure"
        )
        if st.button("Cancel and discard", key="run_cancel_discard", disabled=not sure, width="stretch"):
            _do(lambda: ws.jobs.cancel(name, session.me(), discard=True))


def _button(label: str, key: str, icon: str, tip: str = "", *, primary: bool = False) -> bool:
    kind = "primary" if primary else "secondary"
    return st.button(
        safe.label(label), key=key, icon=f":material/{icon}:", help=safe.label(tip, 200), type=kind
    )


def _enqueue(ws: Workspace, run: Run) -> None:
    _do(lambda: ws.jobs.enqueue(run.id, session.me()))


def _do(command: Callable[[], object]) -> None:
    """Ask for something, and draw the page anew with what came of it."""
    session.attempt(command)
    st.rerun()
