"""All evaluations: whether lessons help, by how much, and how sure that is."""

from typing import get_args

import streamlit as st

from core.proof import EVALUATION_STATES, EvaluationFilter, Held, Purpose
from pages.parts import evaluations, frame, list_filter, measured_alarm, paging, session
from pages.parts.list_filter import STATES, Choice

PAGE = 10
CHOICES = (
    Choice("State", "state", EVALUATION_STATES, STATES, 170),
    Choice("Split", "of", get_args(Held), {}, 110),
    Choice("For", "for", get_args(Purpose), evaluations.PURPOSES, 170),
)

ws = session.workspace()
frame.page(
    "Evaluations",
    "The same tasks with and without lessons, on splits that taught nothing: whether they help, by how much, and how "
    "sure that is.",
)
measured_alarm.draw(ws, "evaluations")
if not ws.store.evaluations.page(limit=0)[1]:
    counts = ws.store.tasks.counts()
    held = sum(by.get(split, 0) for by in counts.values() for split in get_args(Held))
    frame.empty(
        "Nothing is measured yet",
        "An evaluation asks the same trial tasks without lessons and with them, compares task by task, and gives the "
        "difference with its 95 % interval. You see what it takes before it starts."
        if held
        else "An evaluation needs tasks of the splits trial or final: tasks that taught nothing. Import some, or load "
        "the sample project from Home.",
        "Measure the library" if held else "Import tasks",
        "pages/prove/new_evaluation.py" if held else "pages/learn/import_tasks.py",
    )
    st.stop()


def filters() -> EvaluationFilter:
    """Which evaluations are listed; the address holds it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text, (state, split, purpose) = list_filter.draw("eval", "Model, arm, or an id", CHOICES)
        st.space("stretch")
        if st.button("New evaluation", key="new_evaluation", type="primary", icon=":material/add:"):
            frame.go("pages/prove/new_evaluation.py")
    return EvaluationFilter(state=state, split=split, purpose=purpose, text=text)


which = filters()
total = ws.store.evaluations.page(which, limit=0)[1]
if not total:
    frame.note("No evaluation fits these filters.")
    st.stop()
place = st.container()
first = paging.offset("eval_page", total, PAGE)
with place:
    evaluations.listed(ws, which, first, PAGE)
