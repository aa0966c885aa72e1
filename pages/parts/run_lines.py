"""Runs as lines of a list, each a link; those at work are looked at again while they are."""

from __future__ import annotations

import streamlit as st

from core.rollout import RunFilter, RunRow
from core.workspace import Workspace
from pages.parts import frame, safe, session, tally, words
from pages.parts.events import when
from pages.parts.safe import Markup, markup

EVERY_S = 5
MOVING = ("waiting", "running", "pausing", "cancelling")
"""States of jobs in which something happens by itself."""


def listed(ws: Workspace, which: RunFilter, first: int, size: int) -> None:
    """One page of runs. While one of them is at work the page is looked at again."""
    at_first, _ = ws.store.runs.page(which, limit=size, offset=first)

    @st.fragment(run_every=EVERY_S if any(map(_moves, at_first)) else None)
    def lines() -> None:
        rows, _ = ws.store.runs.page(which, limit=size, offset=first)
        for row in rows:
            frame.way(
                row.id, _line(row), f"Open run {row.id}", "pages/learn/run.py", id=row.id, look="w-card"
            )
        if any(map(_moves, at_first)) and not any(map(_moves, rows)):
            session.redraw()  # once: nothing moves any more

    lines()


def _moves(row: RunRow) -> bool:
    return row.job_state in MOVING and row.status not in ("done", "failed", "cancelled")


def _line(row: RunRow) -> Markup:
    finished = row.groups - row.waiting
    state, tone = words.run_state(row.status, row.job_state, finished > 0)
    recorded = row.kind == "recorded"
    spent = row.spent
    took = [
        words.plural(spent.calls, "call"),
        f"{spent.prompt_tokens + spent.completion_tokens:,} tokens",
        *([words.money(spent.cost_usd)] if spent.cost_usd else []),
    ]
    what = "recorded rollouts" if recorded else f"{row.group_size} rollouts a task, {row.split}"
    foot = (what, f"library v{row.library_version}", *(took if spent.calls else ()))
    return markup(
        '<div class="w-run"><div class="top"><span class="id">{id}</span>{state}<span class="model">{model}</span>'
        '<span class="end">{when}</span></div><div class="mid">{bar}<span class="num">{count}</span></div>'
        '<div class="foot">{foot}</div></div>',
        id=row.id,
        state=frame.chip(state, tone),
        model=safe.short(row.note if recorded else row.model, 80),
        when=when(row.created_at),
        bar=_bar(row),
        count=f"{finished:,} of {words.plural(row.groups, 'group')} · {row.informative:,} informative"
        f" · {words.plural(row.proposals, 'proposal')}",
        foot=" · ".join(foot),
    )


def _bar(row: RunRow) -> Markup:
    """Informative, other and failed groups of all."""
    total = max(1, row.groups)
    other = row.groups - row.waiting - row.informative - row.failed
    parts = (
        ("informative", row.informative, "w-grain-fill"),
        ("uninformative", other, "w-chaff-fill"),
        ("failed", row.failed, "w-bad-fill"),
    )
    return markup(
        '<div class="w-bar" role="img" aria-label="{said}">{pieces}</div>',
        said=f"{row.informative} informative, {other} uninformative, {row.failed} failed, {row.waiting} waiting",
        pieces=tally.pieces(total, parts),
    )
