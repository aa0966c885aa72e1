"""Plan a run: what it would do and cost is shown before it starts."""

from typing import get_args

import streamlit as st

from core.rollout import SPLITS
from core.settings import PRESETS as WEIGHTED
from core.settings import Component, Preset, RewardConfig, RunConfig
from pages.parts import frame, safe, session, words
from pages.parts.guard import guard

PRESETS: list[Preset] = [*WEIGHTED, "own"]
PARTS = get_args(Component)
TOOLS = ["python", "fetch", "files"]


def named(preset: Preset) -> str:
    return "own weights" if preset == "own" else words.reward(RewardConfig(preset=preset))


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
    with st.expander("Epochs, gate and reward", icon=":material/repeat:"):
        one, two, three = st.columns([1, 1, 2])
        epochs = one.number_input("Epochs", 1, 100, 1, key="run_epochs")
        batch_size = two.number_input("Tasks a batch", 1, None, 40, key="run_batch_size")
        gate = three.selectbox(
            "Between batches", list(words.GATE), key="run_gate", format_func=words.GATE.__getitem__
        )
        one, two = st.columns(2)
        preset = one.selectbox("Reward", PRESETS, key="run_reward", format_func=named)
        withhold = two.checkbox("Withhold right answers", key="run_withhold", disabled=not extraction)
        weights: dict[str, float] = {}
        if preset == "own":
            for part, column in zip(PARTS, st.columns(len(PARTS)), strict=True):
                weights[part] = column.number_input(
                    safe.label(part),
                    0.0,
                    None,
                    1.0 if part == "verified" else 0.0,
                    0.1,
                    key=f"run_weight_{part}",
                )
    with st.expander("Sampling and caps", icon=":material/tune:"):
        one, two, three = st.columns(3)
        temperature = one.number_input("Temperature", 0.0, 2.0, 0.7, 0.1, key="run_temperature")
        max_tokens = two.number_input("Tokens a reply, at most", 1, None, 64, key="run_max_tokens")
        seed = three.number_input("Seed", 0, None, 0, key="run_seed")
        one, two, three = st.columns(3)
        again = one.number_input(
            "Sample anew, times",
            0,
            8,
            0,
            key="run_again",
            help="Where all rollouts of a task got the same reward.",
        )
        again_at = two.number_input(
            "At temperature", 0.0, 2.0, 1.0, 0.1, key="run_again_at", disabled=not again
        )
        patience = three.number_input(
            "Seconds a rollout, at most", 1.0, None, None, key="run_patience", placeholder="no cap"
        )
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
    with st.expander("Agent with tools", icon=":material/construction:"):
        tools = st.multiselect(
            "Tools",
            TOOLS,
            key="run_tools",
            placeholder="None: a rollout is one reply",
            accept_new_options=True,
            help="A tool server that the trust file names goes in as mcp:NAME.",
        )
        one, two = st.columns([1, 2])
        max_steps = one.number_input("Tool calls, at most", 1, 200, 12, key="run_steps", disabled=not tools)
        hosts = two.multiselect(
            "Hosts that fetch may ask",
            [],
            key="run_hosts",
            placeholder="example.org",
            accept_new_options=True,
            disabled="fetch" not in tools,
        )

with plan_side:
    frame.section("What it would do")
    with guard(stop=True):
        config = RunConfig.read(
            {
                "endpoint": endpoint,
                "extraction_endpoint": extraction or None,
                "judge_endpoint": roles["judge"],
                "group_size": group_size,
                "split": split,
                "domains": tuple(domains),
                "limit": limit,
                "epochs": epochs,
                "batch_size": batch_size,
                "gate": gate,
                "reward": {"preset": preset, "weights": weights},
                "withhold_answer": bool(withhold and extraction),
                "resample": {"attempts": again, "temperature": again_at} if again else None,
                "rollout_timeout_s": patience,
                "agent": {"tools": tuple(tools), "max_steps": max_steps, "fetch_hosts": tuple(hosts)}
                if tools
                else None,
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
    least, most = plan.estimate.total.low, plan.estimate.total.high
    frame.stats(
        [
            (len(plan.tasks), "tasks"),
            (len(plan.tasks) * group_size * epochs, "rollouts"),
            (f"{most.calls:,}", "calls at most"),
        ]
    )
    frame.facts(
        [
            ("Model", plan.model),
            (
                "Tokens",
                words.between(
                    least.prompt_tokens + least.completion_tokens, most.prompt_tokens + most.completion_tokens
                ),
            ),
            (
                "Cost",
                f"{words.money(least.cost_usd)} to {words.money(most.cost_usd)}" if most.cost_usd else "none",
            ),
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
        label = f"Start: {words.plural(most.calls, 'call')} at most"
    if st.button(
        safe.label(label), key="run_start", type="primary", icon=":material/play_arrow:", width="stretch"
    ):
        with guard(stop=True):
            run = ws.learning.start(config, session.me())
            if run.status != "done":
                ws.jobs.enqueue(run.id, session.me(), config)
        st.switch_page("pages/learn/run.py", query_params={"id": run.id})
    frame.note("A worker in the background does it: closing this page, or the app, does not stop it.")
