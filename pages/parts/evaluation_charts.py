"""The charts of an evaluation: each difference with its interval, told by shape and label and never by colour alone."""

from __future__ import annotations

from collections.abc import Sequence

from core.proof import ArmResult, Effect
from pages.parts import measured
from pages.parts.charts import BAD, CHAFF, GRAIN, draw, frame, wrapped

MARKS: dict[measured.Verdict, tuple[str, str]] = {
    "better": ("circle", GRAIN),
    "worse": ("diamond", BAD),
    "unclear": ("circle-open", CHAFF),
    "none": ("x-thin-open", CHAFF),
}
"""Shape and colour of the mark."""
CURVES = 6
"""As many as can be told apart by their marks."""


def differences(rows: Sequence[tuple[str, Effect]], baseline: str, key: str) -> None:
    """A line an arm: its mean reward minus the baseline's, to the right where it is better; the bar is the interval."""
    import plotly.graph_objects as go

    shown = [(name, effect) for name, effect in rows if effect.mean is not None]
    if not shown:
        return
    means = [effect.mean or 0.0 for _, effect in shown]
    lows = [m if e.low is None else e.low for m, (_, e) in zip(means, shown, strict=True)]
    highs = [m if e.high is None else e.high for m, (_, e) in zip(means, shown, strict=True)]
    marks = [MARKS[measured.verdict(effect)] for _, effect in shown]
    figure = go.Figure(
        go.Scatter(
            x=[round(m, 4) for m in means],
            y=[f"{wrapped(name, 26)} (n = {effect.tasks})" for name, effect in shown],
            mode="markers+text",
            text=[
                f"{measured.SAID[measured.verdict(e)][0]} {m:+.2f}"
                for m, (_, e) in zip(means, shown, strict=True)
            ],
            textposition="top center",
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [round(h - m, 4) for h, m in zip(highs, means, strict=True)],
                "arrayminus": [round(m - low, 4) for low, m in zip(lows, means, strict=True)],
                "thickness": 1.8,
                "width": 6,
                "color": CHAFF,
            },
            marker={
                "size": 12,
                "symbol": [symbol for symbol, _ in marks],
                "color": [colour for _, colour in marks],
                "line": {"width": 2, "color": [colour for _, colour in marks]},
            },
            customdata=[
                [measured.span(e), measured.counts(e), measured.chance(e.p_two_sided)] for _, e in shown
            ],
            hovertemplate="%{y}<br>%{x:+.3f}, %{customdata[0]}, p %{customdata[2]}<br>%{customdata[1]}<extra></extra>",
        )
    )
    most = measured.reach([effect for _, effect in shown]) * 1.1
    frame(figure, 90 + 46 * len(shown))
    figure.update_layout(showlegend=False)
    figure.update_yaxes(type="category", range=[len(shown) - 0.5, -0.75], showgrid=False)
    figure.update_xaxes(
        title="← worse    difference    better →",
        range=[-most, most],
        zeroline=True,
        zerolinewidth=1.5,
        zerolinecolor=CHAFF,
    )
    said = "; ".join(f"{wrapped(name)} {measured.line(effect)}" for name, effect in shown[:6])
    draw(figure, key, f"Differences to {wrapped(baseline)} with their 95 % intervals: {said}")


def curves(arms: Sequence[ArmResult], key: str) -> None:
    """pass@k by k, a line for each of at most `CURVES` sampled arms, told apart by their marks."""
    import plotly.graph_objects as go

    from pages.parts.charts import SERIES

    symbols = ("circle", "square", "diamond", "triangle-up", "x", "star")
    dashes = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
    figure = go.Figure()
    for i, arm in enumerate(arms):
        figure.add_scatter(
            x=list(arm.pass_at),
            y=[round(p, 4) for p in arm.pass_at.values()],
            mode="lines+markers",
            name=wrapped(arm.name),
            customdata=[arm.pass_tasks.get(k) for k in arm.pass_at],
            line={"color": SERIES[i], "width": 2, "dash": dashes[i]},
            marker={"symbol": symbols[i], "size": 9},
            hovertemplate="%{fullData.name}: pass@%{x} = %{y:.2f} (n = %{customdata})<extra></extra>",
        )
    frame(figure, 250)
    most = max((k for arm in arms for k in arm.pass_at), default=1)
    figure.update_xaxes(
        title="k", type="log", tickvals=[2**i for i in range(12) if 2**i <= most], ticktext=None
    )
    figure.update_yaxes(title="pass@k", range=[0, 1.04])
    draw(figure, key, "Unbiased pass@k by k, a line for each arm")
