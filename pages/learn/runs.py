"""All runs: what was tried, how far it is, and what it took."""

import streamlit as st

from core.rollout import RUN_STATES, SPLITS, RunFilter
from pages.parts import frame, list_filter, paging, run_lines, session
from pages.parts.list_filter import STATES, Choice

PAGE = 25
CHOICES = (
    Choice("State", "state", RUN_STATES, STATES, 190),
    Choice("Split", "of", SPLITS, {}, 130),
)

ws = session.workspace()
frame.page(
    "Runs", "A run samples several rollouts of each task, scores them, and draws proposals from the contrast."
)


def recorded() -> None:
    """The way in for rollouts that there are already."""
    if st.button("Import recorded rollouts", key="import_rollouts", icon=":material/upload:"):
        frame.go("pages/learn/import_rollouts.py")


if not ws.store.runs.count():
    has_tasks = bool(ws.store.tasks.stamp())
    frame.empty(
        "No runs yet",
        "Choose an endpoint and a group size; you see how many calls it takes before anything starts."
        if has_tasks
        else "A run needs tasks: import some first, or load the sample project from Home.",
        "Start a run" if has_tasks else "Import tasks",
        "pages/learn/new_run.py" if has_tasks else "pages/learn/import_tasks.py",
    )
    with st.container(horizontal=True, horizontal_alignment="center"):
        recorded()
    st.stop()


def filters() -> RunFilter:
    """Which runs are listed; the address holds it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text, (state, split) = list_filter.draw("run", "Model, file, or an id", CHOICES)
        st.space("stretch")
        recorded()
        if st.button("New run", key="new_run", type="primary", icon=":material/add:"):
            frame.go("pages/learn/new_run.py")
    return RunFilter(state=state, split=split, text=text)


which = filters()
total = ws.store.runs.page(which, limit=0)[1]
if not total:
    frame.note("No run fits these filters.")
    st.stop()
place = st.container()
first = paging.offset("run_page", total, PAGE)
with place:
    run_lines.listed(ws, which, first, PAGE)
