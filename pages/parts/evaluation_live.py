"""How far an evaluation is, and what can be wanted of it: as of a run, whose arms it samples side by side."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from core.job import Job
from core.proof import Evaluation, EvaluationStatus
from core.rollout import Run, Tally
from core.settings import RunConfig
from core.workspace import Workspace
from pages.parts import frame, jobs, live, progress, safe, words

CAPS = {"max_calls", "max_tokens_total", "max_cost_usd"}
OF_A_RUN = ("gate", "fresh")
"""Evaluations that the job of a run works on: they have none of their own."""


def state(purpose: str, status: EvaluationStatus, job_state: str | None, begun: bool) -> tuple[str, str]:
    """(words, tone) of an evaluation; see `words.run_state`."""
    if purpose in OF_A_RUN and status in ("waiting", "running") and job_state is None:
        return "with its run", "accent"
    return words.run_state(status, job_state, begun)


class Work(NamedTuple):
    """An evaluation as `jobs` sees work."""

    id: str
    status: str
    tally: Tally
    config: RunConfig
    """Of which only the caps are meant."""


def work_of(ws: Workspace, found: Evaluation) -> Work:
    tallies = [ws.store.runs.tally(run_id) for ids in found.runs.values() for run_id in ids]
    total = Tally(
        **{
            name: sum(getattr(t, name) for t in tallies)
            for name in ("waiting", "informative", "uninformative", "failed")
        }
    )
    caps = RunConfig.read(found.config.model_dump(include=CAPS))
    return Work(found.id, found.status, total, caps)


def arm(ws: Workspace, run: Run) -> None:
    """A run that is an arm of an evaluation is steered and read there."""
    frame.page(run.id, f"{run.note or 'An arm of an evaluation'}, with {run.model}.", crumb="Run")
    frame.note(
        "It is an arm of an evaluation: nothing is learned from it, and it goes on and stops with that."
    )
    if evaluation_id := ws.store.evaluations.of_run(run.id):
        st.page_link(
            "pages/prove/evaluation.py",
            label=safe.label(f"Open {evaluation_id}"),
            icon=":material/science:",
            query_params={"id": evaluation_id},
        )


def draw(ws: Workspace, found: Evaluation, job: Job | None) -> None:
    """Progress that looks again while something happens by itself, and the buttons that steer it."""

    def look() -> tuple[str, Job | None]:
        now = ws.store.evaluations.get(found.id)
        newest = ws.jobs.of_run(found.id)
        _progress(ws, now, newest)
        return now.status, newest

    live.watch(ws, found.id, found.status, job, look)
    _steering(ws, found, job)


def _progress(ws: Workspace, found: Evaluation, job: Job | None) -> None:
    work = work_of(ws, found)
    total, done = work.tally.total, work.tally.total - work.tally.waiting
    live.groups(
        ws, state(found.purpose, found.status, job.state if job else None, done > 0), done, total, job
    )
    if work.status not in ("done", "cancelled"):
        safe.draw(progress.bar(done, total))
    live.speed(ws, work.id, job)
    spent = ws.store.spending.of_run(work.id)
    if spent.calls or work.status != "done":
        live.took(spent, jobs.caps(work, job), free=found.config.free)


def _steering(ws: Workspace, found: Evaluation, job: Job | None) -> None:
    work = work_of(ws, found)
    if run_id := ws.store.evaluations.gate_of(found.id):
        st.page_link(
            "pages/learn/run.py",
            label=safe.label(f"Open {run_id}, whose gate began it"),
            icon=":material/conversion_path:",
            query_params={"id": run_id},
        )
    if found.purpose in OF_A_RUN and job is None and found.status in ("waiting", "running"):
        frame.note("The gate of a run works on it: it goes on and stops with that run.")
        return
    jobs.trouble(ws, work, job)
    if work.status == "done":
        return
    live.steer(ws, work, job)
