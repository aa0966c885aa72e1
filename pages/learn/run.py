"""One run: how far it is, what its groups said, and what was drawn from them."""

from collections import defaultdict

import streamlit as st

from core.job import Job
from core.rollout import Run
from pages.parts import frame, jobs, safe, session, tally, words
from pages.parts.events import when
from pages.parts.guard import guard
from pages.parts.safe import joined, markup

ws = session.workspace()
frame.back("Runs", "pages/learn/runs.py")
if not (run_id := session.asked()):
    frame.page("Run", "One run, from its first rollout to its proposals.")
    frame.empty("No run chosen", "Choose one from the list.", "All runs", "pages/learn/runs.py")
    st.stop()
with guard(stop=True):
    run = ws.store.runs.get(run_id)

recorded = run.kind == "recorded"
frame.page(
    run.id,
    f"Recorded rollouts from {run.note}"
    if recorded
    else f"{run.config.group_size} rollouts of each {run.config.split} task with {run.model}, library version "
    f"{run.library_version}"
    + (f" ({run.with_lessons:,} groups got lessons of it)." if run.with_lessons else "."),
    crumb="Run",
)
job = None if recorded else ws.jobs.of_run(run.id)


def progress(run: Run, job: Job | None) -> None:
    text, tone = words.run_state(run, job)
    took = run.usage if recorded else run.spent  # what was really sent, where Winnow sent it
    limits = jobs.caps(run, job)
    safe.html(
        '<div class="w-chips">{chip}<span class="w-note">{n} of {all} groups finished</span></div>',
        chip=frame.chip(text, tone),
        n=f"{run.tally.total - run.tally.waiting:,}",
        all=f"{run.tally.total:,}",
    )
    tally.bar(run.tally)
    if job and jobs.active(job):
        jobs.progress(ws, job)
    tokens = took.prompt_tokens + took.completion_tokens
    frame.stats(
        [
            (f"{took.calls:,}", words.of_cap("model calls", limits.max_calls, "{:,}")),
            (f"{tokens:,}", words.of_cap("tokens", limits.max_tokens_total, "{:,}")),
            (words.money(took.cost_usd), words.of_cap("cost", limits.max_cost_usd, "${:,.2f}")),
        ]
    )


@st.fragment(run_every=2 if jobs.active(job) else None)
def live() -> None:
    now, newest = ws.store.runs.get(run_id), None if recorded else ws.jobs.of_run(run_id)
    progress(now, newest)
    if jobs.active(newest):
        ws.ensure_worker()
    if (now.status, newest and newest.state) != (run.status, job and job.state) and jobs.active(job):
        st.rerun()


live()
if not recorded:
    jobs.trouble(ws, run, job)
    if run.status == "review":
        frame.note("Its gate waits for you: decide on the proposals and publish them, then let it go on.")
    jobs.controls(ws, run, job)
    if job and job.state == "paused" and job.error.startswith("The cap of "):
        jobs.other_caps(ws, run, job)

with st.container(horizontal=True):
    if st.button("Look at its groups", key="run_groups", icon=":material/scatter_plot:"):
        st.switch_page("pages/learn/groups.py", query_params={"group_run": run.id})
    if run.extraction.proposed and st.button(
        "Review proposals", key="run_review", icon=":material/rate_review:"
    ):
        st.switch_page("pages/review/review.py")
    again = run.tally.failed + len(run.extraction.not_contrasted)
    if (
        run.status == "done"
        and again
        and not recorded
        and st.button(
            safe.label(f"Retry {words.plural(again, 'group')} that failed"),
            key="run_retry",
            icon=":material/replay:",
        )
    ):
        session.attempt(lambda: ws.jobs.requeue(run.id, session.me()))
        st.rerun()
if run.tally.failed:
    frame.section("What failed", "the first five groups")
    rows, _ = ws.store.groups.page(run.id, status="failed", limit=5)
    failed = [(row, ws.store.groups.get(row.id, trajectories=False).rollouts) for row in rows]
    frame.facts(
        [
            (row.id, next((safe.short(r.error, 300) for r in rollouts if r.error), row.reason))
            for row, rollouts in failed
        ]
    )

left, right = st.columns(2, gap="large")
with left:
    frame.section("Suggestions", "suggested = proposed + said already + superseded + quarantined")
    tally.operations(run.extraction)
    frame.section("Settings")
    config = run.config
    rows: list[tuple[str, object]] = [
        ("Started", when(run.created_at)),
        ("Finished", when(run.finished_at or "not yet")),
    ]
    if not recorded:
        rows += [
            ("Endpoint", config.endpoint),
            (
                "Lessons drawn by",
                f"evidence and {config.extraction_endpoint}" if config.extraction_endpoint else "evidence",
            ),
            ("Domains", ", ".join(config.domains) or "all"),
            ("Temperature", config.temperature),
            ("Tokens a reply", config.max_tokens),
            ("Seed", config.seed),
            ("Epochs", f"{config.epochs}, in batches of {config.batch_size}"),
            ("Between batches", words.GATE[config.gate]),
            ("Reward", words.reward(config.reward)),
        ]
        if config.agent:
            rows.append(("Tools", ", ".join(config.agent.tools) or "none"))
        if config.resample:
            again = words.plural(config.resample.attempts, "time")
            rows.append(("Sampled anew", f"up to {again} at temperature {config.resample.temperature:g}"))
    frame.facts(rows)
    if config.epochs > 1 or config.gate != "none":
        frame.section("Batches")
        tally.batches(ws.store.runs.batches(run.id))
with right:
    frame.section("Mean reward by domain", "of scored rollouts; unscored is not 0")
    by_domain: dict[str, list[float]] = defaultdict(list)
    for domain, reward in ws.store.groups.rewards(run.id):
        by_domain[domain].append(reward)
    if not by_domain:
        frame.note("No rollout is scored yet.")
    else:
        bars = joined(
            markup(
                '<div class="w-finding"><p>{domain}</p><div class="w-share"><span>n = {n}</span><span class="track">'
                '<i class="w-grain-fill" style="width:{share}%"></i></span><b>{mean}</b></div></div>',
                domain=domain,
                n=len(values),
                share=f"{100 * min(max(sum(values) / len(values), 0), 1):.1f}",
                mean=f"{sum(values) / len(values):.2f}",
            )
            for domain, values in by_domain.items()
        )
        safe.draw(bars)
