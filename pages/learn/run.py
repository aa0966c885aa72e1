"""One run: how far it is, what its groups said, and what was drawn from them."""

import streamlit as st

from pages.parts import evaluation_live, frame, lessons_drawn, run_view, session
from pages.parts.guard import guard

VIEWS = ("Results", "Batches", "Settings")

ws = session.workspace()
frame.back("Runs", "pages/learn/runs.py")
if not (run_id := session.asked()):
    frame.page("Run", "One run, from its first rollout to its proposals.")
    frame.empty("No run chosen", "Choose one from the list.", "All runs", "pages/learn/runs.py")
    st.stop()
with guard(stop=True):
    run = ws.store.runs.brief(run_id)
if run.kind == "evaluated":
    evaluation_live.arm(ws, run)
    st.stop()
job = ws.jobs.of_run(run.id)

run_view.head(ws, run)
run_view.live(ws, run, job)
run_view.steering(ws, run, job)
run_view.ways(ws, run)
lessons_drawn.draw(ws, run, job)
run_view.failures(ws, run, job)
chosen = st.segmented_control(
    "View",
    VIEWS,
    default="Results",
    required=True,
    key="run_view",
    bind="query-params",
    label_visibility="collapsed",
)
match chosen:
    case "Batches":
        run_view.batches(ws, run)
    case "Settings":
        run_view.settings(run)
    case _:
        run_view.results(ws, run)
