"""Work that goes on by itself, on its own page: looked at again while it moves, how fast it is, how it is steered."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from core.job import Job
from core.rollout import NO_PRICE, Usage
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.watching import calls_a_minute
from pages.parts import frame, jobs, meters, pace, safe, session, words
from pages.parts.jobs import Work
from pages.parts.meters import Meter

SOON_S, LATER_S = 2, 5
"""Seconds between two looks, in the first minute and after it."""
MINUTE_S = 60.0
WATCHED = "w_watched"

Look = Callable[[], tuple[str, Job | None]]
"""Draws how far it is; gives its status and its newest job at that moment."""


def watch(ws: Workspace, work_id: str, status: str, job: Job | None, look: Look) -> None:
    """Look every few seconds while something happens by itself; not once after that.

    Args:
        ws: the workspace.
        work_id: of the run or the evaluation.
        status: its own, as the page was drawn with it; another one draws the page anew.
        job: likewise.
        look: one look.
    """
    moving = jobs.active(job)
    every = SOON_S if _watched_s(work_id) < MINUTE_S else LATER_S

    @st.fragment(run_every=every if moving else None)
    def again() -> None:
        now, newest = look()
        if jobs.active(newest):
            ws.ensure_worker()
        changed = (now, newest and newest.state) != (status, job and job.state)
        if moving and (changed or (every == SOON_S and _watched_s(work_id) >= MINUTE_S)):
            session.redraw()

    again()


def _watched_s(work_id: str) -> float:
    """Seconds since this session began to look at it."""
    held = session.get(WATCHED)
    if not isinstance(held, tuple) or held[0] != work_id:
        held = (work_id, time.monotonic())
        session.put(WATCHED, held)
    return time.monotonic() - float(held[1])


def groups(ws: Workspace, state: tuple[str, str], done: int, total: int, job: Job | None) -> None:
    """Its state, how many groups are finished, and who sees to it."""
    text, tone = state
    safe.html(
        '<div class="w-chips">{chip}<span class="w-note">{n} of {all} groups finished</span>'
        '<span class="w-note">{worker}</span></div>',
        chip=frame.chip(text, tone),
        n=f"{done:,}",
        all=f"{total:,}",
        worker=jobs.worker(ws, job) if job and jobs.active(job) else "",
    )


def speed(ws: Workspace, work_id: str, job: Job | None) -> None:
    """What it is at, how fast, and how long it may still take; nothing where nobody is at it."""
    if job is None or job.state != "running":
        return
    what = f"{job.what[:1].upper()}{job.what[1:]}" or "Starting"
    unit = "groups" if job.what == "groups" else "steps"
    rate, rest = pace.per_minute(ws.folder, job), pace.left(ws.folder, job)
    calls = calls_a_minute(ws.store, work_id)
    parts = [
        f"{what}: {job.done:,} of {job.total:,}" if job.total else what,
        f"{rate:.0f} {unit} a minute" if rate else "",
        f"{words.plural(calls, 'call')} in the last minute" if calls else "",
        f"about {rest} left" if rest else "",
    ]
    frame.note(" · ".join(part for part in parts if part))


def took(usage: Usage, limits: RunConfig | None, *, free: bool = False) -> None:
    """What was sent, calls, tokens and money, against the caps.

    Args:
        usage: the sums.
        limits: with the caps; None for what was recorded elsewhere, which has none.
        free: only the embedded model was asked.
    """
    calls, sent, money = (
        (limits.max_calls, limits.max_tokens_total, limits.max_cost_usd) if limits else (None, None, None)
    )
    meters.draw(
        [
            Meter("model calls" if limits is None else "model calls sent", usage.calls, calls, _whole),
            Meter("tokens", usage.prompt_tokens + usage.completion_tokens, sent, _whole),
            _spent(usage, money, limits is None, free),
        ],
        capped=limits is not None,
    )


def _spent(usage: Usage, cap: float | None, recorded: bool, free: bool) -> Meter:
    if usage.priced(free=free):
        return Meter("spent", usage.cost_usd, cap, words.money)
    return Meter("recorded" if recorded else "known", 0, None, lambda _: "no cost" if recorded else NO_PRICE)


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def steer(ws: Workspace, work: Work, job: Job | None) -> None:
    """What can be wanted of it, and what happened meanwhile."""
    jobs.controls(ws, work, job)
    if job and job.state == "paused" and job.error.startswith("The cap of "):
        jobs.other_caps(ws, work, job)
    if jobs.active(job):
        frame.note("It goes on in a process of its own: closing this page, or the app, does not stop it.")
    if job and (job.losses or job.attempts > 1 or jobs.active(job)):
        with st.expander("What happened", icon=":material/history:", expanded=bool(job.losses)):
            jobs.story(ws, job)
