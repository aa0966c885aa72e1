"""One evaluation: how far it is, what it found, and every task with the rollouts behind it."""

import streamlit as st

from pages.parts import (
    evaluation_closely,
    evaluation_live,
    evaluation_settings,
    evaluation_tasks,
    evaluation_view,
    evaluations,
    frame,
    measured,
    measured_alarm,
    session,
)
from pages.parts.guard import guard

VIEWS = ("Report", "Tasks", "Settings")

ws = session.workspace()
frame.back("Evaluations", "pages/prove/evaluations.py")
if not (evaluation_id := session.asked()):
    frame.page("Evaluation", "One evaluation, from its first rollout to its report.")
    frame.empty(
        "No evaluation chosen", "Choose one from the list.", "All evaluations", "pages/prove/evaluations.py"
    )
    st.stop()
with guard(stop=True), st.spinner("Counting …"):
    found = ws.store.evaluations.get(evaluation_id.upper())
    report = evaluations.report(ws, found.id)

frame.page(
    found.id, evaluation_view.lead(report), crumb=f"Evaluation · {evaluations.PURPOSES[found.purpose]}"
)
evaluation_live.draw(ws, found, ws.jobs.of_run(found.id))
evaluation_view.retry(ws, report)
if any(one.evaluation_id == found.id for one in ws.measuring.alarms()):
    measured_alarm.draw(ws, "evaluation", here=found.id)
for note in report.notes:
    measured.note(note)
evaluation_view.downloads(ws, report)
view = st.segmented_control(
    "View",
    VIEWS,
    default="Report",
    required=True,
    key="evaluation_view",
    bind="query-params",
    label_visibility="collapsed",
)
match view:
    case "Settings":
        evaluation_settings.draw(report)
    case "Tasks" if report.comparisons:
        evaluation_tasks.draw(ws, report, evaluation_closely.chosen(report))
    case "Tasks":
        frame.note("It has one arm, so there is nothing to compare.")
    case _:
        evaluation_view.found(report)
        evaluation_view.arms(report)
        if report.comparisons:
            frame.section("More closely")
            evaluation_closely.draw(report, evaluation_closely.chosen(report))
