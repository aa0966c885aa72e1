"""The chart of two runs: the difference of each domain, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from core.workspace.versus import Difference
from pages.parts.charts import CHAFF, GRAIN, draw, frame, wrapped

DOMAINS = 30


def differences(rows: Sequence[Difference], key: str) -> None:
    """A line a domain: B minus A, to the right where B is better; the bar is the 95 % interval over tasks."""
    import plotly.graph_objects as go

    shown = rows[:DOMAINS]
    named = [wrapped(d.domain) if d.domain else "all shared tasks" for d in shown]
    better = [d.difference >= 0 for d in shown]
    figure = go.Figure(
        go.Scatter(
            x=[round(d.difference, 4) for d in shown],
            y=[f"{name} (n = {d.tasks})" for name, d in zip(named, shown, strict=True)],
            mode="markers+text",
            text=[f"{d.difference:+.2f}" for d in shown],
            textposition="top center",
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [max(0.0, d.high - d.difference) if d.high is not None else 0 for d in shown],
                "arrayminus": [max(0.0, d.difference - d.low) if d.low is not None else 0 for d in shown],
                "thickness": 1.5,
                "width": 5,
                "color": CHAFF,
            },
            marker={
                "size": 11,
                "symbol": ["circle" if yes else "diamond-open" for yes in better],
                "color": [GRAIN if yes else CHAFF for yes in better],
                "line": {"width": 1.5, "color": [GRAIN if yes else CHAFF for yes in better]},
            },
            customdata=[[d.mean_a, d.mean_b, d.tasks] for d in shown],
            hovertemplate="%{y}<br>A %{customdata[0]:.2f}, B %{customdata[1]:.2f} over %{customdata[2]} tasks"
            "<extra></extra>",
        )
    )
    edges = [abs(v) for d in shown for v in (d.difference, d.low or 0.0, d.high or 0.0)]
    reach = max(0.1, *edges) * 1.15
    frame(figure, 90 + 44 * len(shown))
    figure.update_layout(showlegend=False)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    figure.update_xaxes(
        title="A better  ←  mean reward of B − A  →  B better",
        range=[-reach, reach],
        zeroline=True,
        zerolinewidth=1.5,
        zerolinecolor=CHAFF,
    )
    draw(figure, key, "Difference of the mean rewards of two runs, by domain")
