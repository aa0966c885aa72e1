"""One run: how far it is, what its groups said, and what was drawn from them."""

from collections import defaultdict

import streamlit as st

from core.rollout import Run
from pages.parts import frame, jobs, safe, session, tally, words
from pages.parts.events import when
from pages.parts.guard import guard, red_line
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
    + (f" ({run.with_lessons:,} groups got lessons of it)." if run.library_version else "."),
    crumb="Run",
)
active = run.status not in ("done", "failed") and jobs.state(ws, run.id) != "idle"


def progress(run: Run, state: str) -> None:
    text, tone = words.run_state(run, state)
    done = run.tally.total - run.tally.waiting
    took = run.usage if recorded else run.spent  # what was really sent, where Winnow sent it
    safe.html(
        '<div class="w-chips">{chip}<span class="w-note">{n} of {all} groups finished</span></div>',
        chip=frame.chip(text, tone),
        n=done,
        all=run.tally.total,
    )
    tally.bar(run.tally)
    frame.stats(
        [
            (f"{took.calls:,}", "model calls"),
            (f"{took.prompt_tokens:,}", "prompt tokens"),
            (f"{took.completion_tokens:,}", "completion tokens"),
            (words.money(took.cost_usd), "cost"),
        ]
    )


@st.fragment(run_every=2 if active else None)
def live() -> None:
    now = ws.store.runs.get(run_id)
    state = jobs.state(ws, run_id) if now.status not in ("done", "failed") else "idle"
    progress(now, state)
    if active and state == "idle":
        st.rerun()


live()
if not active and run.status not in ("done", "failed"):
    if run.note and not recorded:
        red_line(run.note)
    if said := jobs.last_words(ws, run.id):
        with st.expander("What its last process said"):
            safe.exact(said)
    if st.button("Resume", key="run_resume", type="primary", icon=":material/play_arrow:"):
        jobs.start(ws, run.id)
        st.rerun()
    frame.note("Finished groups are kept, and replies that came are not paid for again.")

with st.container(horizontal=True):
    if st.button("Look at its groups", key="run_groups", icon=":material/scatter_plot:"):
        st.switch_page("pages/learn/groups.py", query_params={"group_run": run.id})
    if run.extraction.proposed and st.button(
        "Review proposals", key="run_review", icon=":material/rate_review:"
    ):
        st.switch_page("pages/review/review.py")
    retry = run.status == "done" and run.tally.failed and not recorded
    if retry and st.button(
        f"Retry {run.tally.failed:d} failed groups", key="run_retry", icon=":material/replay:"
    ):
        jobs.start(ws, run.id, retry_failed=True)
        st.rerun()

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
        ]
    frame.facts(rows)
with right:
    frame.section("Mean reward by domain", "of scored rollouts; unscored is not 0")
    by_domain: dict[str, list[float]] = defaultdict(list)
    for domain, reward in ws.store.runs.rewards(run.id):
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
