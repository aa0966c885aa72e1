"""One rollout: what it did step by step, what came of it, and what a person says of it."""

from functools import partial

import streamlit as st

from core.experience import GENERAL
from core.workspace import Workspace
from core.workspace.reading import whole
from pages.parts import (
    attempt,
    frame,
    messages,
    outline,
    safe,
    session,
    step_view,
    trace,
    trace_bar,
    verdict,
    words,
)
from pages.parts.guard import guard, red_line

QUESTION = 600


def file_of(ws: Workspace, rollout_id: str) -> bytes:
    return whole(ws.store, rollout_id).encode("utf-8", "replace")


ws = session.workspace()
said = session.take_flash()
if not (rollout_id := session.asked()):
    frame.back("Groups", "pages/learn/groups.py")
    frame.page("Rollout", "One attempt at one task.", says=False)
    frame.say(said)
    frame.empty("No rollout chosen", "Choose one from its group.", "All groups", "pages/learn/groups.py")
    st.stop()
with guard(stop=True):
    rollout = ws.store.trajectories.head(rollout_id)
    reading = trace.opened(ws, rollout_id)
    group = ws.store.groups.get(rollout.group_id, trajectories=False)
here = trace.Trace(ws, rollout, reading, [r.id for r in group.rollouts])
listed = {name: str(value) for name, value in st.query_params.items() if name.startswith("in_")}

frame.back(f"Group {rollout.group_id}", "pages/learn/group.py", id=rollout.group_id, **listed)
frame.page(
    f"{rollout.group_id} #{rollout.replicate}",
    f"One attempt at task {rollout.task_id} by {rollout.model or 'an unnamed model'}.",
    crumb="Rollout",
    says=False,
)
with st.container(horizontal=True, vertical_alignment="center", key="trace_head"):
    safe.html('<div class="w-chips">{chips}</div>', chips=attempt.chips(ws, group, rollout))
    trace_bar.place(here)
    st.download_button(
        "Download it whole",
        partial(file_of, ws, rollout.id),
        f"{rollout.id}.json",
        "application/json",
        key="rollout_download",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )
if rollout.error is not None:
    red_line(safe.short(rollout.error, 2_000))
if task := ws.store.tasks.find(rollout.task_id):
    safe.html(
        '<div class="w-asked"><span class="w-note">Task: {by}{answer}</span>'
        '<div class="text" dir="auto">{question}</div></div>',
        by=words.checked(task.verifier.kind),
        answer=f"; right answer: {safe.short(task.answer, 120)}" if task.answer else "",
        question=safe.short(task.question, QUESTION),
    )
with st.container(key="trace_figures"):
    attempt.figures(ws, group, rollout)

if reading.lines or reading.messages:
    trace.filters(here)
domain = task.domain if task else GENERAL
attempt.not_recorded(ws, group, rollout, reading)
with st.container(key="trace_desk"):
    if here.view == "steps" and here.lines:
        left, right = st.columns([2, 3], gap="medium")
        with left:
            outline.draw(here)
        with right:
            verdict.form(here, domain)
            with st.container(key="trace_step"):
                step_view.draw(here)
    else:
        verdict.form(here, domain)
        if here.view == "steps" and reading.lines:
            outline.draw(here)
        elif reading.messages:
            messages.draw(here)
verdict.corrections(ws, rollout)
attempt.answer(reading, rollout, here.find, here.view == "messages")
attempt.words_of_it(rollout)
with st.bottom:
    frame.say(said)
    trace_bar.keys()
    with st.container(horizontal=True, key="trace_actions", vertical_alignment="center"):
        verdict.buttons(here)
        trace_bar.ways(here)
