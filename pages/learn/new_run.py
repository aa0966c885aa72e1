"""Plan a run: what it would do and cost is shown before it starts."""

import streamlit as st

from core.errors import WinnowError
from core.settings import RunConfig
from pages.parts import dry_run, estimate, frame, run_form, safe, session, task_view
from pages.parts.guard import guard, red_line

ws = session.workspace()
frame.back("Runs", "pages/learn/runs.py")
frame.page(
    "New run", "Several rollouts of each task with a frozen model, scored and compared with each other."
)
counts, _ = task_view.counted(ws)
if not counts:
    frame.empty(
        "Tasks first",
        "A run needs tasks with a checkable outcome.",
        "Import tasks",
        "pages/learn/import_tasks.py",
    )
    st.stop()


def start(config: RunConfig) -> None:
    """Write the run down, or find the one that is there, and see to it that a worker does it."""
    run = ws.learning.start(config, session.me())
    if run.status != "done":
        ws.jobs.enqueue(run.id, session.me(), config)
    frame.go("pages/learn/run.py", id=run.id)


settings_side, plan_side = st.columns([3, 2], gap="large")
with settings_side:
    form = run_form.Form(ws, list(counts))
    settings = form.draw()
with plan_side:
    frame.section("What it would do")
    try:
        config = RunConfig.read(settings, where="run")
        with st.spinner("Counting …"):
            found = estimate.outlook(ws, config)
    except WinnowError as e:
        red_line(run_form.plainly(str(e)))
        form.problem(str(e))
        st.stop()
    tried = dry_run.now(ws, found).found
    estimate.draw(ws, found, tried)
    estimate.known(found)
    refusal = session.refusal("reviewer")
    if st.button(
        safe.label(estimate.start_label(found)),
        key="run_start",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        disabled=bool(refusal),
        help=frame.refused(refusal),
    ):
        with guard(stop=True):
            start(config)
    frame.note("A worker in the background does it: closing this page, or the app, does not stop it.")
    frame.section("Try it first", "one task, as the run would")
    dry_run.draw(ws, found, config)
