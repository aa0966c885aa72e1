"""The tasks of one comparison, the largest differences first, with the groups that hold the rollouts of both arms."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from core.proof import Comparison, Report, TaskRow, Verdict
from core.workspace import Workspace
from pages.parts import address, evaluation_replies, frame, paging, safe, words

NAME = 24
"""Characters of an arm's name beside each task."""
GROUPS = 3
"""Groups of one arm and task that get a link, one a seed."""
OUTCOMES: dict[str, str] = {
    "": "all tasks",
    "win": "better",
    "loss": "worse",
    "tie": "alike",
    "unpaired": "not scored in both",
    "in sample": "learned from",
}
TONES: dict[Verdict, tuple[str, str]] = {
    "win": ("▲ better", "good"),
    "loss": ("▼ worse", "bad"),
    "tie": ("= alike", "quiet"),
    "unpaired": ("not scored in both", "quiet"),
    "in sample": ("learned from", "quiet"),
}


def draw(ws: Workspace, report: Report, one: Comparison) -> None:
    """Every task of one comparison, the largest losses and gains first, with what both arms replied."""
    frame.section("Task by task", f"{one.arm} against {one.baseline}, the largest differences first")
    counts = {v: sum(r.outcome == v for r in one.rows) for v in get_args(Verdict)}
    options = ["", *(v for v, n in counts.items() if n)]
    which = st.segmented_control(
        "Tasks",
        options,
        default="",
        required=True,
        key="evaluation_show",
        format_func=OUTCOMES.__getitem__,
        bind="query-params",
        label_visibility="collapsed",
        wrap=True,
    )
    shown = [r for r in one.rows if which in ("", r.outcome)]
    shown.sort(key=lambda r: (-abs(r.difference or 0.0), r.task_id))
    first = paging.offset("evaluation_page", len(shown))
    for row in shown[first : first + paging.PAGE]:
        with st.container(gap="xxsmall"):
            _task(ws, report, one, row)


def _task(ws: Workspace, report: Report, one: Comparison, row: TaskRow) -> None:
    word, tone = TONES[row.outcome]
    moved = "" if row.difference is None else f" {row.difference:+.2f}"
    safe.html(
        '<div class="w-card w-task-row"><div class="top"><span class="id" title="{task}">{task}</span>{chip}'
        '<span class="w-chip quiet">{domain}</span><span class="end" title="{sides}">{baseline} {a} → {arm} {b}'
        "</span></div>"
        '<div class="text clamp" dir="auto">{question}</div></div>',
        task=row.task_id,
        chip=frame.chip(f"{word}{moved}", tone),
        domain=row.domain,
        sides=f"{one.baseline} → {one.arm}",
        baseline=safe.short(one.baseline, NAME),
        a=words.number(row.baseline),
        arm=safe.short(one.arm, NAME),
        b=words.number(row.arm),
        question=safe.short(row.question, 200),
    )
    sides = ((one.baseline, row.baseline_groups), (one.arm, row.arm_groups))
    with st.container(horizontal=True, gap="small"):
        shown = evaluation_replies.opener(one, row)
        for side, (name, ids) in enumerate(sides):
            for group_id in ids[:GROUPS]:
                if st.button(
                    safe.label(f"{safe.short(name, NAME)}: {group_id}"),
                    key=f"evaluation_{side}_{group_id}",
                    type="tertiary",
                    icon=":material/scatter_plot:",
                ):
                    st.switch_page(
                        "pages/learn/group.py",
                        query_params={"id": group_id, **address.inside({"id": report.id})},
                    )
    if (most := max(len(ids) for _, ids in sides)) > GROUPS:
        frame.note(f"The first {GROUPS} of {most:,} seeds; the JSON names the groups of all.")
    if shown:
        evaluation_replies.draw(ws, one, row)
