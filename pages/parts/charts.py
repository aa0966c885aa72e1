"""Plotly charts of groups. Signs and kinds are told by shape and label too, never by colour alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from core.rollout import Group, GroupRow, Rollout

if TYPE_CHECKING:
    import plotly.graph_objects as go

GRAIN, CHAFF, BAD = "#c4822a", "#7f8c99", "#c9543f"
"""Readable on paper and on the dark theme."""

MARKS = {
    "informative": (GRAIN, "circle", "informative"),
    "uninformative": (CHAFF, "diamond-open", "uninformative"),
    "failed": (BAD, "x", "failed"),
}
CONFIG = {"displayModeBar": False, "displaylogo": False}


def scatter(rows: Sequence[GroupRow], key: str) -> str:
    """Mean reward against spread, a point a group; returns the id of the group that was clicked."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for status, (colour, symbol, name) in MARKS.items():
        shown = [r for r in rows if r.status == status and r.mean is not None and r.spread is not None]
        if not shown:
            continue
        figure.add_scatter(
            x=[(r.mean or 0) + _nudge(r.id, "x") for r in shown],
            y=[(r.spread or 0) + _nudge(r.id, "y") for r in shown],
            mode="markers",
            name=name,
            marker={
                "color": colour,
                "symbol": symbol,
                "size": 10,
                "opacity": 0.8,
                "line": {"width": 1.2, "color": colour},
            },
            customdata=[[r.id, r.mean, r.spread] for r in shown],
            hovertemplate="%{customdata[0]}<br>mean %{customdata[1]:.2f}, spread %{customdata[2]:.2f}<extra></extra>",
        )
    _frame(figure, 340)
    figure.update_layout(clickmode="event+select", dragmode=False)
    known = [r for r in rows if r.mean is not None and r.spread is not None]
    usual = all(
        0 <= (r.mean or 0) <= 1 and (r.spread or 0) <= 1 for r in known
    )  # an imported reward may be any number
    figure.update_xaxes(title="Mean reward", zeroline=False, range=[-0.06, 1.06] if usual else None)
    figure.update_yaxes(title="Spread (best − worst)", zeroline=False, range=[-0.08, 1.1] if usual else None)
    state = st.plotly_chart(
        figure,
        key=key,
        on_select="rerun",
        selection_mode="points",
        config=CONFIG,
        alt="Groups by mean reward and spread of their rewards",
    )
    points = state["selection"]["points"]
    return str(points[0]["customdata"][0]) if points and points[0].get("customdata") else ""


def rewards(group: Group) -> None:
    """A bar a rollout: its reward, in [0, 1] for built-in verifiers."""
    shown = _ranked(group)
    values = [r.reward for r in shown]
    figure = _bars(
        shown,
        [v or 0 for v in values],
        ["no reward" if v is None else f"{v:.2f}" for v in values],
        [GRAIN if (v or 0) > 0 else CHAFF for v in values],
        ["" for _ in values],
    )
    if all(0 <= (v or 0) <= 1 for v in values):
        figure.update_xaxes(tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_xaxes(
        range=[min(0.0, *(v or 0 for v in values)) * 1.25, max(1.0, *(v or 0 for v in values)) * 1.2]
    )
    st.plotly_chart(figure, key="reward_bars", config=CONFIG, alt="Reward of each rollout")


def advantages(group: Group) -> None:
    """A bar a rollout: its advantage; below zero it is hatched and its label has a minus."""
    shown = _ranked(group)
    values = [r.advantage for r in shown]
    figure = _bars(
        shown,
        [v or 0 for v in values],
        ["none" if v is None else f"{v:+.2f}" for v in values],
        [GRAIN if (v or 0) >= 0 else CHAFF for v in values],
        ["" if (v or 0) >= 0 else "/" for v in values],
    )
    reach = max([abs(v) for v in values if v is not None], default=1.0) or 1.0
    figure.update_xaxes(
        range=[-1.4 * reach, 1.4 * reach], zeroline=True, zerolinewidth=1.5, zerolinecolor=CHAFF
    )
    st.plotly_chart(figure, key="advantage_bars", config=CONFIG, alt="Advantage of each rollout")


def _ranked(group: Group) -> list[Rollout]:
    """The best at the top: plotly draws the first row at the bottom."""
    return sorted(group.rollouts, key=lambda r: (r.reward is not None, r.reward or 0, -r.replicate))


def _bars(
    shown: Sequence[Rollout],
    values: Sequence[float],
    texts: Sequence[str],
    colours: Sequence[str],
    hatch: Sequence[str],
) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure(
        go.Bar(
            x=list(values),
            y=[f"#{r.replicate}" for r in shown],
            orientation="h",
            text=list(texts),
            textposition="outside",
            cliponaxis=False,
            marker={
                "color": list(colours),
                "line": {"color": list(colours), "width": 1.2},
                "pattern": {"shape": list(hatch), "fillmode": "replace", "size": 6, "solidity": 0.35},
            },
            hovertemplate="rollout %{y}: %{text}<extra></extra>",
        )
    )
    _frame(figure, 60 + 30 * len(shown))
    figure.update_layout(showlegend=False, bargap=0.35, dragmode=False)
    figure.update_yaxes(type="category", showgrid=False)
    figure.update_xaxes(zeroline=False)
    return figure


def _frame(figure: go.Figure, height: int) -> None:
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": None},
        hoverlabel={"align": "left"},
    )


def _nudge(of: str, axis: str) -> float:
    """A small, fixed shift, so that groups with equal numbers stay visible apart."""
    return (zlib.crc32(f"{axis}{of}".encode()) % 1000 / 1000 - 0.5) * 0.035
