"""What broke off in a run: grouped by cause, with an example that can be opened, and one click to try it again."""

from __future__ import annotations

import streamlit as st

from core.job import Job
from core.rollout import Run
from core.workspace import Workspace
from core.workspace.watching import Cause, causes
from pages.parts import frame, jobs, safe, session, words
from pages.parts.safe import markup

SHOWN = 8
"""Causes that are shown; the others are rare."""


def draw(ws: Workspace, run: Run, job: Job | None) -> None:
    """The causes of what failed, and the button that makes up for it."""
    found = causes(ws.store, run.id)
    untaught = run.extraction.not_contrasted
    if not found and not untaught:
        return
    broken = sum(cause.rollouts for cause in found)
    frame.section("What broke off", f"{words.plural(broken, 'rollout')}, by cause" if found else "")
    for number, cause in enumerate(found[:SHOWN]):
        _cause(number, cause)
    if len(found) > SHOWN:
        rest = sum(cause.rollouts for cause in found[SHOWN:])
        frame.note(
            f"and {words.plural(rest, 'rollout')} for {words.plural(len(found) - SHOWN, 'other cause')}"
        )
    if untaught:
        group, why = next(iter(untaught.items()))
        frame.note(
            f"{words.plural(len(untaught), 'group')} could not be contrasted by the model; the first, {group}: "
            f"{safe.short(why, 300)}"
        )
    if run.kind == "sampled":
        _again(ws, run, job, broken=bool(found), untaught=len(untaught))


def _cause(number: int, cause: Cause) -> None:
    content = markup(
        '<div class="w-cause"><b class="n">{n}</b><div><div class="name">{name}</div>'
        '<div class="w-note">{groups}, for example {id}: <span dir="auto">{example}</span></div></div></div>',
        n=f"{cause.rollouts:,}",
        name=cause.name,
        groups=words.plural(cause.groups, "group"),
        id=cause.rollout_id,
        example=safe.short(cause.example, 240),
    )
    frame.way(
        f"cause_{number}",
        content,
        f"Open rollout {cause.rollout_id}",
        "pages/learn/rollout.py",
        id=cause.rollout_id,
    )


def _again(ws: Workspace, run: Run, job: Job | None, *, broken: bool, untaught: int) -> None:
    """One click puts what failed back into the queue; replies that came are not paid for again."""
    if jobs.active(job):
        frame.note("It can be tried again as soon as the run stands still.")
        return
    if run.status not in ("done", "waiting", "running") or (job and job.state == "paused" and not broken):
        return
    refusal = session.refusal("reviewer")
    what = "what broke off" if broken else words.plural(untaught, "group")
    if st.button(
        safe.label(f"Try {what} again"),
        key="run_retry",
        icon=":material/replay:",
        disabled=bool(refusal),
        help=frame.refused(refusal)
        or "Its groups go back into the queue; replies that came are in the cache.",
    ):
        session.attempt(lambda: ws.jobs.requeue(run.id, session.me()))
        st.rerun()
