"""Background work on the screen: what a person can want of it, what stopped it, and what happened to it meanwhile.

Model calls never run in the web process: a worker does them, and the app makes sure that one runs. Whatever is asked
here is written down first, so it survives the tab, the app and the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import streamlit as st

from core.job import ENDED, Job
from core.rollout import Tally
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.watching import Told, attendance, history
from pages.parts import frame, safe, session, words
from pages.parts.events import when
from pages.parts.guard import red_line
from pages.parts.safe import joined, markup

PAUSE = "Nothing new starts; calls in flight come home and are kept."
PAUSE_NOW = "Calls in flight are dropped; they are made again on resuming."
LINES = 8
"""Newest lines of what happened that are shown."""


class Work(Protocol):
    """What jobs are about: a run, or an evaluation."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def config(self) -> RunConfig: ...


def active(job: Job | None) -> bool:
    """Whether something happens to a job by itself."""
    return job is not None and job.state not in (*ENDED, "paused")


def worker(ws: Workspace, job: Job) -> str:
    """Who sees to a job now, in a sentence."""
    found = attendance(job, ws.store.events.clock())
    if found.state == "at work":
        return "A worker is at work on it."
    if found.state == "silent":
        return f"Its worker was not heard of since {clock(found.heard_at)}; another one takes over, nothing is lost."
    if found.state == "nobody":
        return ""
    before = ws.store.jobs.before(job)
    return (
        f"It waits for {words.plural(before, 'job')} before it."
        if before
        else "A worker is about to take it up."
    )


def clock(at: str | None) -> str:
    """`10:32:07` of a time of the log, UTC."""
    return f"{at[11:19]} UTC" if at else "some time ago"


def controls(ws: Workspace, run: Work, job: Job | None) -> None:
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
        _going_on(ws, run, job)
        if state not in ("", "cancelling", *ENDED):
            _cancel(ws, name, discard=run.status != "done")  # what was recorded elsewhere stays


def _going_on(ws: Workspace, run: Work, job: Job | None) -> None:
    """What lets a run that stands still go on."""
    if run.status == "review":
        if _button("Review proposals", "run_to_review", "rate_review", primary=True):
            frame.go("pages/review/review.py", review_run=run.id)
        if _button("Go on", "run_resume", "play_arrow"):
            _do(lambda: ws.jobs.enqueue(run.id, session.me()))
    elif job and job.state in ("failed", "cancelled"):
        if not job.discard and _button("Requeue", "run_requeue", "replay", primary=True):
            _do(lambda: ws.jobs.requeue(job.id, session.me()))
    elif (job and job.state == "paused") or (run.status not in ("done", "failed") and not active(job)):
        begun = job or run.status == "running" or run.tally.waiting < run.tally.total
        if _button("Resume" if begun else "Start", "run_resume", "play_arrow", primary=True):
            _do(lambda: ws.jobs.enqueue(run.id, session.me()))


def caps(run: Work, job: Job | None) -> RunConfig:
    """The configuration of a run under the caps that its job has now."""
    found = job.options.get("caps") if job else None
    return RunConfig.read({**run.config.model_dump(), **(found if isinstance(found, dict) else {})})


def other_caps(ws: Workspace, run: Work, job: Job) -> None:
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


def trouble(ws: Workspace, run: Work, job: Job | None) -> None:
    """Why work stands still, in one red line; and what the worker said last, where it ended badly."""
    if job and job.error and run.status != "review" and not active(job):
        red_line(job.error)
    if active(job) and (said := ws.worker_trouble()):
        red_line("The worker in the background ended badly; it is started again.")
        with st.expander("What it said last"):
            safe.exact(said)


def story(ws: Workspace, job: Job) -> None:
    """What happened to a job, while one watched and while one did not."""
    told = history(ws.store, job)
    safe.html('<ol class="w-story">{lines}</ol>', lines=joined(map(_line, told[-LINES:])))
    if len(told) > LINES:
        with st.expander(safe.label(f"All {len(told)} lines")):
            safe.html('<ol class="w-story">{lines}</ol>', lines=joined(map(_line, told)))


def _line(told: Told) -> safe.Markup:
    return markup(
        '<li class="{tone}"><time title="{at}">{when}</time><span>{said}</span></li>',
        tone=told.tone,
        at=told.at,
        when=f"{when(told.at)}{told.at[16:19]}",
        said=told.said,
    )


def load_sample(workspace: Workspace) -> None:
    """Load the sample project and draw the page anew; it asks no model."""
    with st.spinner("Loading the sample project and counting its evidence …"):
        session.attempt(lambda: workspace.load_sample(session.me()), "The sample project is loaded.")
    st.rerun()


def _cancel(ws: Workspace, name: str, *, discard: bool) -> None:
    refusal = session.refusal("reviewer")
    with st.popover("Cancel", icon=":material/close:", disabled=bool(refusal), key="run_cancel"):
        frame.note("Either way nothing of it goes on, and calls in flight are dropped.")
        frame.note("Kept: finished groups, rollouts and proposals stay. It can be requeued.")
        if st.button("Cancel, keep what it made", key="run_cancel_keep", width="stretch"):
            _do(lambda: ws.jobs.cancel(name, session.me()))
        if not discard:
            return
        frame.note(
            "Discarded: its groups and rollouts go, for good. Replies stay in the cache: they are paid for."
        )
        sure = st.checkbox(
            "Take away its finished groups, and the proposals that nobody decided on", key="run_discard_sure"
        )
        if st.button("Cancel and discard", key="run_cancel_discard", disabled=not sure, width="stretch"):
            _do(lambda: ws.jobs.cancel(name, session.me(), discard=True))


def _button(label: str, key: str, icon: str, tip: str = "", *, primary: bool = False) -> bool:
    refusal = session.refusal("reviewer")
    return st.button(
        safe.label(label),
        key=key,
        icon=f":material/{icon}:",
        help=safe.label(refusal or tip, 200),
        type="primary" if primary else "secondary",
        disabled=bool(refusal),
    )


def _do(command: Callable[[], object]) -> None:
    """Ask for something, and draw the page anew with what came of it."""
    session.attempt(command)
    st.rerun()
