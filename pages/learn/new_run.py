"""Plan a run: what it would do and cost is shown before it starts."""

import streamlit as st

from core.rollout import SPLITS
from core.settings import RunConfig
from pages.parts import frame, jobs, safe, session, words
from pages.parts.guard import guard

ws = session.workspace()
frame.back("Runs", "pages/learn/runs.py")
frame.page(
    "New run", "Several rollouts of each task with a frozen model, scored and compared with each other."
)

counts = ws.store.tasks.counts()
if not counts:
    frame.empty(
        "Tasks first",
        "A run needs tasks with a checkable outcome.",
        "Import tasks",
        "pages/learn/import_tasks.py",
    )
    st.stop()

roles = ws.models.roles()
names = [e.name for e in ws.models.all()]
settings, plan_side = st.columns([3, 2], gap="large")
with settings:
    one, two = st.columns(2)
    endpoint = one.selectbox(
        "Endpoint", names, index=names.index(roles["rollout"] or names[0]), key="run_endpoint"
    )
    extraction = two.selectbox(
        "Lessons drawn by",
        ["", *names],
        index=["", *names].index(roles["extraction"] or ""),
        key="run_extraction",
        format_func=lambda n: f"evidence and {n}" if n else "counted evidence alone",
    )
    one, two, three = st.columns(3)
    group_size = one.number_input("Rollouts a task", 2, 64, 8, key="run_group_size")
    split = two.selectbox("Split", SPLITS, key="run_split")
    limit = three.number_input("Tasks a domain, at most", 1, None, None, key="run_limit", placeholder="all")
    domains = st.multiselect("Domains", list(counts), key="run_domains", placeholder="All")
    with st.expander("Sampling and caps", icon=":material/tune:"):
        one, two, three = st.columns(3)
        temperature = one.number_input("Temperature", 0.0, 2.0, 0.7, 0.1, key="run_temperature")
        max_tokens = two.number_input("Tokens a reply, at most", 1, None, 64, key="run_max_tokens")
        seed = three.number_input("Seed", 0, None, 0, key="run_seed")
        one, two, three = st.columns(3)
        max_calls = one.number_input(
            "Calls, at most", 0, None, None, key="run_max_calls", placeholder="no cap"
        )
        all_tokens = two.number_input(
            "Tokens, at most", 0, None, None, key="run_all_tokens", placeholder="no cap"
        )
        max_cost = three.number_input(
            "US dollars, at most", 0.0, None, None, key="run_max_cost", placeholder="no cap"
        )

with plan_side:
    frame.section("What it would do")
    with guard(stop=True):
        config = RunConfig.read(
            {
                "endpoint": endpoint,
                "extraction_endpoint": extraction or None,
                "group_size": group_size,
                "split": split,
                "domains": tuple(domains),
                "limit": limit,
                "temperature": temperature,
                "max_tokens": max_tokens,
                "seed": seed,
                "max_calls": max_calls,
                "max_tokens_total": all_tokens,
                "max_cost_usd": max_cost,
            },
            where="run",
        )
        plan = ws.learning.plan(config)
    frame.stats(
        [
            (len(plan.tasks), "tasks"),
            (len(plan.tasks) * group_size, "rollouts"),
            (plan.calls, "calls at most"),
        ]
    )
    frame.facts(
        [
            ("Model", plan.model),
            (
                "Library",
                f"version {plan.library_version}, lessons for {plan.with_lessons:,} of {len(plan.tasks):,} tasks",
            ),
        ]
    )
    if plan.finished:
        frame.note(f"{plan.resumes} did exactly this. Another seed, or a newer library, makes it a new run.")
        label = f"Open {plan.resumes}"
    elif plan.resumes:
        frame.note(
            f"{plan.resumes} asked for exactly this and is not finished: it goes on, and nothing is paid twice."
        )
        label = f"Go on with {plan.resumes}"
    else:
        label = f"Start: {words.plural(plan.calls, 'call')} at most"
    if st.button(
        safe.label(label), key="run_start", type="primary", icon=":material/play_arrow:", width="stretch"
    ):
        with guard(stop=True):
            run = ws.learning.start(config, session.me())
        if run.status != "done":
            jobs.start(ws, run.id)
        st.switch_page("pages/learn/run.py", query_params={"id": run.id})
    frame.note("It works in a process of its own: closing this page, or the app, does not stop it.")
