"""Evaluations as lines of a list, each with its differences to the baseline; those at work are looked at again."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from core.proof import Effect, EvaluationFilter, EvaluationRow, Purpose, Report
from core.workspace import Workspace
from pages.parts import evaluation_live, frame, measured, progress, run_lines, safe, session, words
from pages.parts.events import when
from pages.parts.safe import Markup, markup

EVERY_S = 5
COMPARED = 4
"""Comparisons of one evaluation that are shown in the list."""
KEPT = 300
"""Headlines that are kept, of all workspaces together."""
PURPOSES: dict[Purpose, str] = {
    "compare": "comparison",
    "lesson": "of single lessons",
    "trial": "trial of proposals",
    "gate": "gate of a run",
    "fresh": "on fresh tasks",
}


class Headline(NamedTuple):
    """What a list shows of a report."""

    tasks: int
    samples: int
    seeds: int
    baseline: str
    effects: tuple[tuple[str, Effect], ...]
    flags: int


def report(ws: Workspace, evaluation_id: str, threshold: float = 1.0) -> Report:
    """The report as it stands, counted anew only when something changed.

    Raises:
        NotFoundError: there is none of that id.
    """
    return _report(ws, _stamp(ws, evaluation_id), evaluation_id, threshold)


def headline(ws: Workspace, evaluation_id: str) -> Headline:
    return _headline(ws, _stamp(ws, evaluation_id), evaluation_id)


def _stamp(ws: Workspace, evaluation_id: str) -> str:
    file = ws.folder / "winnow.db"
    return f"{file}:{file.stat().st_ino}:{ws.store.evaluations.stamp(evaluation_id)}"


@st.cache_data(max_entries=12, show_spinner=False)
def _report(_ws: Workspace, stamp: str, evaluation_id: str, threshold: float) -> Report:
    return _ws.evaluating.report(evaluation_id, threshold)


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _headline(_ws: Workspace, stamp: str, evaluation_id: str) -> Headline:
    found = _ws.evaluating.report(evaluation_id)
    return Headline(
        tasks=found.tasks,
        samples=found.config.samples,
        seeds=len(found.config.seeds),
        baseline=found.config.arms[0].name,
        effects=tuple((c.arm, c.effect) for c in found.comparisons),
        flags=sum(len(c.flags) for c in found.comparisons),
    )


def listed(ws: Workspace, which: EvaluationFilter, first: int, size: int) -> None:
    """One page of evaluations. While one of them is at work the page is looked at again."""
    at_first, _ = ws.store.evaluations.page(which, limit=size, offset=first)
    with st.spinner("Counting …"):
        told = {row.id: headline(ws, row.id) for row in at_first}  # of the drawing: no look counts anew

    @st.fragment(run_every=EVERY_S if any(map(moves, at_first)) else None)
    def lines() -> None:
        rows, _ = ws.store.evaluations.page(which, limit=size, offset=first)
        for row in rows:
            content = _line(row, told.get(row.id) or headline(ws, row.id))
            target = "pages/prove/evaluation.py"
            frame.way(row.id, content, f"Open evaluation {row.id}", target, id=row.id, look="w-card")
        if any(map(moves, at_first)) and not any(map(moves, rows)):
            session.redraw()  # once: nothing moves any more

    lines()


def moves(row: EvaluationRow) -> bool:
    return row.job_state in run_lines.MOVING and row.status not in ("done", "cancelled")


def _line(row: EvaluationRow, told: Headline) -> Markup:
    finished = row.groups - row.waiting
    state, tone = evaluation_live.state(row.purpose, row.status, row.job_state, finished > 0)
    seeds = words.plural(told.seeds, "seed")
    return markup(
        '<div class="w-run"><div class="top"><span class="id">{id}</span>{state}{split}{purpose}'
        '<span class="model">{model}</span><span class="end">{when}</span></div>{how_far}{effects}'
        '<div class="foot">{tasks} × {samples} rollouts × {seeds} for each arm · baseline {baseline}{flags}</div>'
        "</div>",
        id=row.id,
        state=frame.chip(state, tone),
        split=frame.chip(row.split, "accent" if row.split == "final" else "quiet"),
        purpose=frame.chip(PURPOSES[row.purpose], "quiet"),
        model=safe.short(row.model, 60),
        when=when(row.created_at),
        how_far=_bar(finished, row.groups) if row.waiting else Markup(),
        effects=_effects(told),
        tasks=words.plural(told.tasks, f"{row.split} task"),
        samples=told.samples,
        seeds=seeds,
        baseline=told.baseline,
        flags=markup(' · <b class="w-look">{n} to look at closer</b>', n=told.flags)
        if told.flags
        else Markup(),
    )


def _effects(told: Headline) -> Markup:
    if not told.effects:
        return markup('<div class="w-note">One arm: it is measured by itself.</div>')
    rows = measured.effects(told.effects[:COMPARED])
    more = len(told.effects) - COMPARED
    return (
        markup('{rows}<div class="w-note">and {n}</div>', rows=rows, n=words.plural(more, "more arm"))
        if more > 0
        else rows
    )


def _bar(finished: int, groups: int) -> Markup:
    return markup(
        '<div class="mid">{bar}<span class="num">{done} of {all} groups</span></div>',
        bar=progress.bar(finished, groups),
        done=f"{finished:,}",
        all=f"{groups:,}",
    )
