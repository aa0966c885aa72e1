"""Charts of one group: what each rollout's reward is made of, and how it stands to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.rollout import Group, Rollout
from pages.parts.charts import CHAFF, GRAIN, draw, frame
from pages.parts.charts_rewards import composition


def ranked(group: Group) -> list[Rollout]:
    """The best first; those without a reward last."""
    return sorted(group.rollouts, key=lambda r: (r.reward is None, -(r.reward or 0), r.replicate))


def rewards(group: Group, parts: Mapping[str, Mapping[str, float]]) -> None:
    """A bar a rollout: its reward, in the parts that it is made of.

    Args:
        group: its rollouts.
        parts: what each component adds, by the rollout's id.
    """
    rows = [
        (f"#{r.replicate}", parts.get(r.id) or {}, "no reward" if r.reward is None else f"{r.reward:.2f}")
        for r in ranked(group)
    ]
    composition(rows, "reward_bars", "Reward of each rollout, in its parts")


def advantages(group: Group) -> None:
    """A bar a rollout: its advantage; below zero it is hatched, to the left, and its label has a minus."""
    import plotly.graph_objects as go

    shown = ranked(group)
    values = [r.advantage for r in shown]
    figure = go.Figure(
        go.Bar(
            x=[v or 0 for v in values],
            y=[f"#{r.replicate}" for r in shown],
            orientation="h",
            text=["none" if v is None else f"{v:+.2f}" for v in values],
            textposition="outside",
            cliponaxis=False,
            marker=_signed(values),
            hovertemplate="rollout %{y}: %{text}<extra></extra>",
        )
    )
    reach = max([abs(v) for v in values if v is not None], default=1.0) or 1.0
    frame(figure, 70 + 30 * len(shown))
    figure.update_layout(showlegend=False, bargap=0.35)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    figure.update_xaxes(
        range=[-1.4 * reach, 1.4 * reach], zeroline=True, zerolinewidth=1.5, zerolinecolor=CHAFF
    )
    draw(
        figure,
        "advantage_bars",
        "Advantage of each rollout: to the right better than its group, to the left worse",
    )


def _signed(values: Sequence[float | None]) -> dict[str, object]:
    colours = [GRAIN if (v or 0) >= 0 else CHAFF for v in values]
    hatches = ["" if (v or 0) >= 0 else "/" for v in values]
    return {
        "color": colours,
        "line": {"color": colours, "width": 1.2},
        "pattern": {"shape": hatches, "fillmode": "replace", "size": 6, "solidity": 0.35},
    }
