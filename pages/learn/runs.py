"""All runs: what was tried, and how far it is."""

import streamlit as st

from pages.parts import frame, jobs, safe, session, words
from pages.parts.events import when
from pages.parts.safe import joined, markup

SHOWN = 100

ws = session.workspace()
runs = ws.store.runs.newest(SHOWN)

frame.page(
    "Runs", "A run samples several rollouts of each task, scores them, and draws proposals from the contrast."
)
if not runs:
    has_tasks = bool(ws.store.tasks.counts())
    frame.empty(
        "No runs yet",
        "Choose an endpoint and a group size; you see how many calls it takes before anything starts."
        if has_tasks
        else "A run needs tasks: import some first, or load the sample project from Home.",
        "Start a run" if has_tasks else "Import tasks",
        "pages/learn/new_run.py" if has_tasks else "pages/learn/import_tasks.py",
    )
    st.stop()

if st.button("New run", key="new_run", type="primary", icon=":material/add:"):
    st.switch_page("pages/learn/new_run.py")
newest = jobs.newest_by_run(ws)
for run in runs:
    tally = run.tally
    state, tone = words.run_state(run, newest.get(run.id))
    kind = (
        "recorded rollouts"
        if run.kind == "recorded"
        else f"{run.config.group_size} rollouts a task, {run.config.split}"
    )
    content = markup(
        '<div class="top"><span class="id">{id}</span>{state}<span class="end">{when}</span></div>'
        '<div class="text">{model}</div><div class="foot">{foot}</div>',
        id=run.id,
        state=frame.chip(state, tone),
        when=when(run.created_at),
        model=safe.short(run.note if run.kind == "recorded" else run.model, 120) or run.id,
        foot=" · ".join(
            (
                kind,
                f"{tally.total - tally.waiting} of {words.plural(tally.total, 'group')}",
                f"{tally.informative} informative",
                f"{words.plural(run.extraction.proposed, 'proposal')}",
                f"library v{run.library_version}",
            )
        ),
    )
    if frame.card(run.id, joined((content,)), f"Open run {run.id}"):
        st.switch_page("pages/learn/run.py", query_params={"id": run.id})
if len(runs) == SHOWN:
    frame.note(f"The newest {SHOWN} runs.")
