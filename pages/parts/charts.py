"""What all charts share, and the map of groups. Signs and kinds are told by shape and label, never by colour alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from core.figures import Grid, GroupPoint

if TYPE_CHECKING:
    import plotly.graph_objects as go

GRAIN, CHAFF, BAD = "#c4822a", "#7f8c99", "#c9543f"
"""Readable on paper and on the dark theme."""
SERIES = ("#c4822a", "#7f8c99", "#5d8f4c", "#a3698f", "#5d86a8", "#c9543f")
HATCHES = ("", "/", ".", "x", "-", "+")
"""Each series has a hatch of its own beside its colour."""

MARKS = {
    "informative": (GRAIN, "circle", "informative"),
    "uninformative": (CHAFF, "diamond-open", "uninformative"),
    "failed": (BAD, "x", "failed"),
}
CONFIG = {"displayModeBar": False, "displaylogo": False}
DENSE = 2_500
"""From this many groups on a map shows cells with counts: single points would hide each other, and weigh a megabyte."""


def scatter(points: Sequence[GroupPoint], key: str) -> str:
    """Mean reward against spread, a point a group; returns the id of the group that was clicked."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for status, (colour, symbol, name) in MARKS.items():
        shown = [p for p in points if p.status == status]
        if shown:
            figure.add_scatter(
                x=[round(p.mean + _nudge(p.id, "x"), 4) for p in shown],
                y=[round(p.spread + _nudge(p.id, "y"), 4) for p in shown],
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 10, "opacity": 0.75}
                | {"line": {"width": 1.2, "color": colour}},
                customdata=[[p.id, round(p.mean, 3), round(p.spread, 3)] for p in shown],
                hovertemplate="%{customdata[0]}<br>mean %{customdata[1]:.2f}, spread %{customdata[2]:.2f}"
                "<extra></extra>",
            )
    usual = all(0 <= p.mean <= 1 and p.spread <= 1 for p in points)  # an imported reward may be any number
    _map_frame(figure, usual)
    picked = _picked(figure, key, "Groups by mean reward and by spread, a point a group")
    return str(picked[0]) if picked else ""


def density(grid: Grid, key: str) -> tuple[float, float] | None:
    """Mean reward against spread, a cell with its count; returns the middle of the cell that was clicked."""
    import plotly.graph_objects as go

    most = max((c.n for c in grid.cells), default=1)
    size = [9 + 21 * (c.n / most) ** 0.5 for c in grid.cells]
    figure = go.Figure(
        go.Scatter(
            x=[round(c.mean, 4) for c in grid.cells],
            y=[round(c.spread, 4) for c in grid.cells],
            mode="markers+text",
            text=[_short_count(c.n) if s > 17 else "" for c, s in zip(grid.cells, size, strict=True)],
            textfont={"size": 10},
            marker={
                "symbol": ["square" if c.informative else "diamond-open" for c in grid.cells],
                "size": size,
                "color": [GRAIN if c.informative else CHAFF for c in grid.cells],
                "opacity": 0.55,
                "line": {"width": 1, "color": [GRAIN if c.informative else CHAFF for c in grid.cells]},
            },
            customdata=[[round(c.mean, 6), round(c.spread, 6), c.n, c.informative] for c in grid.cells],
            hovertemplate="mean about %{x:.2f}, spread about %{y:.2f}<br>%{customdata[2]:,} groups, "
            "%{customdata[3]:,} informative<extra></extra>",
            showlegend=False,
        )
    )
    usual = all(0 <= c.mean <= 1 and c.spread <= 1 for c in grid.cells)
    _map_frame(figure, usual)
    picked = _picked(figure, key, "Groups by mean reward and by spread, counted in cells")
    return (float(str(picked[0])), float(str(picked[1]))) if picked else None


def frame(figure: go.Figure, height: int) -> None:
    """The look of every chart."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": None},
        hoverlabel={"align": "left"},
        dragmode=False,
        bargap=0.2,
    )


def draw(figure: go.Figure, key: str, alt: str) -> None:
    """Draw a chart that is only looked at."""
    st.plotly_chart(figure, key=key, config=CONFIG, alt=alt)


def wrapped(text: str, width: int = 22) -> str:
    """A name for an axis: plain, and short enough. Plotly reads some HTML in texts, so its marks are taken out."""
    plain = " ".join(text.replace("<", "‹").replace(">", "›").replace("&", "＆").split())
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def _map_frame(figure: go.Figure, usual: bool) -> None:
    frame(figure, 330)
    figure.update_layout(clickmode="event+select")
    figure.update_xaxes(title="Mean reward", zeroline=False, range=[-0.06, 1.06] if usual else None)
    figure.update_yaxes(title="Spread (best − worst)", zeroline=False, range=[-0.08, 1.1] if usual else None)


def _picked(figure: go.Figure, key: str, alt: str) -> list[object]:
    """What belongs to the point that was clicked; empty where none was."""
    state = st.plotly_chart(
        figure, key=key, on_select="rerun", selection_mode="points", config=CONFIG, alt=alt
    )
    points = state["selection"]["points"]
    return list(points[0].get("customdata") or ()) if points else []


def _short_count(n: int) -> str:
    return f"{n}" if n < 1_000 else f"{n / 1_000:.1f}k" if n < 10_000 else f"{n // 1_000}k"


def _nudge(of: str, axis: str) -> float:
    """A small, fixed shift, so that groups with equal numbers stay visible apart."""
    return (zlib.crc32(f"{axis}{of}".encode()) % 1000 / 1000 - 0.5) * 0.035
