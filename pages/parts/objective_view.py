"""How far a version moves the model: the means over tasks, a chart of them, and what the numbers are of."""

from __future__ import annotations

import streamlit as st

from core.workspace.policy import Policy, TaskMove
from pages.parts import charts, frame, safe, words
from pages.parts.charts import CHAFF, GRAIN
from pages.parts.safe import joined, markup

TASKS = 60
"""Tasks of the chart and of the table."""


def draw(found: Policy) -> None:
    frame.section(
        f"Version {found.config.version} on {found.model}", words.plural(found.measured, "task") + " measured"
    )
    error = f" ± {found.kl_k3_se:.2f}" if found.kl_k3_se is not None else ""
    frame.stats(
        [
            (words.number(found.kl_k3) + error, "KL in nats a reply, k3 ± standard error over tasks"),
            (words.number(found.kl_k1), "KL, k1"),
            (words.number(found.kl_token, 3), "nats a token, k3"),
            (words.number(found.log_ratio, sign=True), "log ratio on replies made without it"),
            (
                words.number(found.surrogate, 3, sign=True),
                f"clipped surrogate, {found.surrogate_tasks:,} tasks",
            ),
        ]
    )
    frame.note(_said(found))
    moved = sorted((m for m in found.moves if m.kl_k3 is not None), key=lambda m: -(m.kl_k3 or 0.0))
    if moved:
        _chart(moved[:TASKS])
        if len(moved) > TASKS:
            frame.note(
                f"The {TASKS} that are moved furthest, of {len(moved):,} tasks; the table has all of them."
            )
        with st.expander("Task by task", icon=":material/list:"):
            _table(moved)
    for reason, n in found.unscored.items():
        frame.note(f"Left out and counted: {words.plural(n, 'reply')}, {reason}.")
    frame.note(found.method)


def _said(found: Policy) -> str:
    """What the numbers mean, in a sentence or two."""
    parts = [
        "0 nats: the library changes nothing; the more, the further its lessons move what the model says."
    ]
    if found.clipped is not None:
        parts.append(f"The clip decides {found.clipped:.0%} of the replies.")
    if found.not_injected:
        parts.append(f"{words.plural(found.not_injected, 'task')} got no lesson, so nothing moves them.")
    return " ".join(parts)


def _chart(moves: list[TaskMove]) -> None:
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, values, symbol, colour in (
        ("k3", [m.kl_k3 for m in moves], "circle", GRAIN),
        ("k1", [m.kl_k1 for m in moves], "line-ns-open", CHAFF),
    ):
        figure.add_scatter(
            x=list(range(1, len(moves) + 1)),
            y=[None if v is None else round(v, 4) for v in values],
            mode="markers",
            name=name,
            marker={"symbol": symbol, "size": 9, "color": colour, "line": {"width": 2, "color": colour}},
            customdata=[[charts.wrapped(m.task_id), m.injected, m.drawn] for m in moves],
            hovertemplate="%{customdata[0]}: %{y:.2f} nats, %{customdata[1]} lessons, %{customdata[2]} replies"
            "<extra></extra>",
        )
    charts.frame(figure, 260)
    figure.update_xaxes(title="Tasks, the most moved first", dtick=max(1, len(moves) // 10))
    figure.update_yaxes(title="KL, nats a reply", rangemode="tozero", zeroline=True, zerolinecolor=CHAFF)
    charts.draw(figure, "objective_tasks", "How far each task is moved, by the estimators k1 and k3")


def _table(moves: list[TaskMove]) -> None:
    rows = joined(
        markup(
            '<tr><td><b>{task}</b><div class="w-note" dir="auto">{question}</div></td><td class="num">{lessons}</td>'
            '<td class="num">{drawn}</td><td class="num">{k1}</td><td class="num">{k3}</td><td class="num">{ratio}</td>'
            '<td class="num">{surrogate}</td></tr>',
            task=safe.short(m.task_id, 40),
            question=safe.short(m.question, 100),
            lessons=m.injected,
            drawn=m.drawn,
            k1=words.number(m.kl_k1, 3),
            k3=words.number(m.kl_k3, 3),
            ratio=words.number(m.log_ratio, 3, sign=True),
            surrogate=words.number(m.surrogate, 3, sign=True) if m.surrogate is not None else "same rewards",
        )
        for m in moves
    )
    safe.html(
        '<div class="w-scroll"><table class="w-table"><tr><th>Task</th><th class="num">Lessons</th>'
        '<th class="num">Replies</th><th class="num">KL k1</th><th class="num">KL k3</th><th class="num">log ratio</th>'
        '<th class="num">Surrogate</th></tr>{rows}</table></div>',
        rows=rows,
    )
