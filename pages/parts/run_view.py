"""The parts of a run's page: live progress, steering, what came of it, and what it was set to."""

from __future__ import annotations

import streamlit as st

from core.figures import GroupFilter
from core.job import Job
from core.rollout import Run
from core.workspace import Workspace
from core.workspace.gate_story import GateTry, gate_story
from pages.parts import charts_rewards, frame, jobs, lessons_drawn, safe, tally, words
from pages.parts import failures as failures_part
from pages.parts import live as watching
from pages.parts.events import when
from pages.parts.figures import Figures
from pages.parts.once import once
from pages.parts.safe import joined, markup

SUMS = "w_run_sums"
DOMAINS = 12
"""Domains whose mean reward is shown."""


def head(ws: Workspace, run: Run) -> None:
    if run.kind == "recorded":
        frame.page(run.id, f"Recorded rollouts from {run.note}", crumb="Run")
        return
    taught = _summed(ws, run).with_lessons
    frame.page(
        run.id,
        f"{run.config.group_size} rollouts of each {run.config.split} task with {run.model}, library version "
        f"{run.library_version}" + (f" ({taught:,} groups got lessons of it)." if taught else "."),
        crumb="Run",
    )


def _summed(ws: Workspace, run: Run) -> Run:
    """With what is summed up over its rollouts: made anew when a group was finished."""
    return once(
        SUMS,
        "run",
        (str(ws.folder), ws.store.figures.stamp(run.id), run.status),
        lambda: ws.store.runs.get(run.id),
    )


# --- how far it is ---


def live(ws: Workspace, run: Run, job: Job | None) -> None:
    """How far it is, looked at again while it moves."""

    def look() -> tuple[str, Job | None]:
        now = ws.store.runs.brief(run.id)
        newest = ws.jobs.of_run(run.id)
        _progress(ws, now, newest)
        return now.status, newest

    watching.watch(ws, run.id, run.status, job, look)


def _progress(ws: Workspace, run: Run, job: Job | None) -> None:
    count = run.tally.total - run.tally.waiting
    state = words.run_state(run.status, job.state if job else None, count > 0)
    if run.kind == "recorded" and jobs.active(job):
        state = ("lessons are drawn", "accent")
    watching.groups(ws, state, count, run.tally.total, job)
    tally.bar(run.tally)
    watching.speed(ws, run.id, job)
    sent = run.kind != "recorded"  # by Winnow
    if sent:
        watching.took(run.spent, jobs.caps(run, job), free=run.config.free)
    else:
        watching.took(_summed(ws, run).usage, None)
        lessons_drawn.sent(run)


# --- steering ---


def steering(ws: Workspace, run: Run, job: Job | None) -> None:
    """What can be wanted of it, why it stands still, and what happened meanwhile."""
    if run.kind == "recorded" and (job is None or job.state in ("done", "cancelled")):
        return
    jobs.trouble(ws, run, job)
    if run.status == "review":
        frame.note("Its gate waits for you: decide on the proposals and publish them, then let it go on.")
    watching.steer(ws, run, job)


def ways(ws: Workspace, run: Run) -> None:
    """Where one goes from here."""
    before = next((r.id for r in ws.store.figures.runs(200) if _number(r.id) < _number(run.id)), "")
    with st.container(horizontal=True, key="run_ways"):
        st.page_link(
            "pages/learn/groups.py",
            label="Its groups",
            icon=":material/scatter_plot:",
            query_params={"group_run": run.id},
        )
        if run.extraction.proposed:
            st.page_link(
                "pages/review/review.py",
                label=safe.label(f"Its {words.plural(run.extraction.proposed, 'proposal')}"),
                icon=":material/rate_review:",
                query_params={"review_run": run.id},
            )
        if before:
            st.page_link(
                "pages/prove/compare.py",
                label=safe.label(f"Compare with {before}"),
                icon=":material/compare_arrows:",
                query_params={"compare_a": before, "compare_b": run.id},
            )
        if run.kind == "sampled":
            st.page_link(
                "pages/learn/new_run.py",
                label="Run again with these settings",
                icon=":material/restart_alt:",
                query_params={"from": run.id},
            )


def _number(run_id: str) -> int:
    return int(run_id[1:]) if run_id[1:].isdigit() else 0


def failures(ws: Workspace, run: Run, job: Job | None) -> None:
    failures_part.draw(ws, run, job)


# --- what came of it ---


def results(ws: Workspace, run: Run) -> None:
    found = Figures(ws, GroupFilter(run_id=run.id))
    spread = found.distribution()
    left, right = st.columns(2, gap="large")
    with left:
        frame.section("Suggestions", "suggested = proposed + said already + superseded + set aside")
        tally.operations(run.extraction)
        gate(ws, run)
    with right:
        frame.section("Mean reward by domain", "of scored rollouts; unscored is not 0")
        _by_domain(found)
    if spread.scored:
        frame.section("Rewards", f"{spread.scored:,} scored rollouts")
        charts_rewards.distribution(spread, "run_rewards", by_domain=len({b.domain for b in spread.bins}) > 1)
    if spread.unscored or spread.errors:
        frame.note(
            f"Not drawn: {spread.unscored:,} without a reward, {spread.errors:,} that broke off. Neither is 0."
        )


def gate(ws: Workspace, run: Run) -> None:
    """What the gate `trial` tried and published, and what it held back and why."""
    for step in gate_story(ws.store, run.id).steps:
        with st.container(horizontal=True, vertical_alignment="center"):
            frame.note(step.told)
            if isinstance(step, GateTry):
                st.page_link(
                    "pages/prove/evaluation.py",
                    label=safe.label(step.again or step.evaluation),
                    icon=":material/science:",
                    query_params={"id": step.again or step.evaluation},
                )


def _by_domain(found: Figures) -> None:
    """A bar a domain, the most frequent first."""
    sums: dict[str, tuple[int, float]] = {}
    for part in found.parts():
        n, total = sums.get(part.domain, (0, 0.0))
        sums[part.domain] = (n + part.scored, total + part.scored * part.reward)
    if not sums:
        frame.note("No rollout is scored yet.")
        return
    most = sorted(sums.items(), key=lambda item: -item[1][0])
    safe.draw(
        joined(
            markup(
                '<div class="w-finding"><p>{domain}</p><div class="w-share"><span>n = {n}</span><span class="track">'
                '<i class="w-grain-fill" style="width:{share}%"></i></span><b>{mean}</b></div></div>',
                domain=domain,
                n=f"{n:,}",
                share=f"{100 * min(max(total / n, 0), 1):.1f}",
                mean=f"{total / n:.2f}",
            )
            for domain, (n, total) in most[:DOMAINS]
        )
    )
    if len(most) > DOMAINS:
        frame.note(f"The {DOMAINS} most frequent of {len(most):,} domains.")


def batches(ws: Workspace, run: Run) -> None:
    figures = Figures(ws, GroupFilter(run_id=run.id)).batches()
    if len(figures) > 1:
        frame.section("Batch by batch", "mean reward, and the share of groups that taught something")
        charts_rewards.over_time(figures, "run_batches")
    frame.section("Batches")
    tally.batches(ws.store.runs.batches(run.id))


def settings(run: Run) -> None:
    config = run.config
    rows: list[tuple[str, object]] = [
        ("Started", when(run.created_at)),
        ("Finished", when(run.finished_at) if run.finished_at else "not yet"),
    ]
    if run.kind == "recorded":
        frame.facts([*rows, ("File", run.note), ("Models", run.model or "not said")])
        return
    drawn = f"evidence and {config.extraction_endpoint}" if config.extraction_endpoint else "evidence"
    rows += [
        ("Endpoint", f"{config.endpoint} · {run.model}"),
        ("Lessons drawn by", drawn),
        ("Tasks", f"{config.split}, {', '.join(config.domains) or 'all domains'}"),
        ("Tasks a domain", config.limit or "all"),
        ("Rollouts a task", config.group_size),
        ("Temperature", config.temperature),
        ("Tokens a reply", config.max_tokens),
        ("Seed", config.seed),
        ("Epochs", f"{config.epochs}, in batches of {config.batch_size}"),
        ("Between batches", words.GATE[config.gate]),
        ("Reward", words.reward(config.reward)),
        ("Right answers", "withheld from extraction" if config.withhold_answer else "shown to extraction"),
    ]
    if config.agent:
        hosts = f"; may fetch from {', '.join(config.agent.fetch_hosts)}" if config.agent.fetch_hosts else ""
        tools = ", ".join(config.agent.tools) or "none"
        rows.append(("Tools", f"{tools}, at most {words.plural(config.agent.max_steps, 'call')}{hosts}"))
    if config.resample:
        again = words.plural(config.resample.attempts, "time")
        rows.append(("Sampled anew", f"up to {again} at temperature {config.resample.temperature:g}"))
    frame.facts(rows)
    with st.expander("As JSON, for `winnow run --config`", icon=":material/data_object:"):
        safe.exact(config.model_dump_json(indent=1), key="run_config", name=f"{run.id}.json")
