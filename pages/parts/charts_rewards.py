"""Charts of the rewards of a run: how they are distributed, what they are made of, and how they went over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.figures import BatchFigure, Distribution
from pages.parts.charts import CHAFF, GRAIN, HATCHES, SERIES, draw, frame, wrapped

DOMAINS = 5
"""Domains with a colour of their own; the others are drawn together."""
BATCHES = 200
"""Batches that are drawn one by one; more are drawn epoch by epoch."""
PARTS = {
    "verified": "verified (how good the answer is)",
    "tools": "tools (calls that worked)",
    "accepted": "accepted (by a user)",
    "epistemic": "epistemic (diverse and new)",
}


def distribution(found: Distribution, key: str, *, by_domain: bool) -> None:
    """A bar a bin: how many rollouts got which reward; with `by_domain`, stacked."""
    import plotly.graph_objects as go

    figure = go.Figure()
    step = (found.high - found.low) / found.places
    for place, (name, bins) in enumerate(_series(found, by_domain)):
        figure.add_bar(
            x=[round(found.low + i * step, 6) for i in bins],
            y=list(bins.values()),
            width=step * 0.85,
            name=name,
            marker=_look(place),
            hovertemplate="reward about %{x:.2f}: %{y:,} rollouts<extra>"
            + (name if by_domain else "")
            + "</extra>",
        )
    frame(figure, 330)
    figure.update_layout(barmode="stack", showlegend=by_domain)
    figure.update_xaxes(
        title="Reward", range=[found.low - step, found.high + step], zeroline=False, showgrid=False
    )
    figure.update_yaxes(title="Rollouts", rangemode="tozero")
    draw(figure, key, "How many rollouts got which reward")


def _series(found: Distribution, by_domain: bool) -> list[tuple[str, Counter[int]]]:
    sizes = Counter[str]()
    for each in found.bins:
        sizes[each.domain] += each.n
    own = {name for name, _ in sizes.most_common(DOMAINS)} if by_domain else set()
    series: dict[str, Counter[int]] = {}
    for each in found.bins:
        name = wrapped(each.domain) if each.domain in own else "other domains" if by_domain else "rollouts"
        series.setdefault(name, Counter())[each.place] += each.n
    return list(series.items())


def _look(place: int) -> dict[str, object]:
    colour = SERIES[place % len(SERIES)]
    return {
        "color": colour,
        "line": {"color": colour, "width": 1},
        "pattern": {
            "shape": HATCHES[place % len(HATCHES)],
            "fillmode": "replace",
            "size": 6,
            "solidity": 0.4,
        },
    }


def composition(rows: Sequence[tuple[str, Mapping[str, float], str]], key: str, alt: str) -> None:
    """Stacked bars: what each part adds to a reward; a row is a name, its parts, and the total in words."""
    import plotly.graph_objects as go

    figure = go.Figure()
    names = [name for name, _, _ in rows]
    used = [part for part in PARTS if any(parts.get(part) for _, parts, _ in rows)] or ["verified"]
    for place, part in enumerate(used):
        figure.add_bar(
            x=[round(parts.get(part, 0.0), 4) for _, parts, _ in rows],
            y=names,
            orientation="h",
            name=PARTS[part],
            marker=_look(place),
            hovertemplate="%{y}: " + part + " adds %{x:.2f}<extra></extra>",
        )
    totals = [sum(parts.values()) for _, parts, _ in rows]
    ends = [max(0.0, total) for total in totals]
    figure.add_scatter(
        x=ends,
        y=names,
        mode="text",
        text=[f"  {said}" for _, _, said in rows],
        textposition="middle right",
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )
    frame(figure, 70 + 30 * len(rows))
    figure.update_layout(barmode="relative", showlegend=len(used) > 1, bargap=0.35)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    figure.update_xaxes(range=[min(0.0, *totals) * 1.25, max(1.0, *ends) * 1.22], zeroline=True)
    if min(totals) >= 0 and max(totals) <= 1:
        figure.update_xaxes(tickvals=[0, 0.25, 0.5, 0.75, 1])
    draw(figure, key, alt)


def over_time(batches: Sequence[BatchFigure], key: str) -> None:
    """Mean reward of each batch with the spread of its tasks, and the share of groups that taught something."""
    from plotly.subplots import make_subplots

    points = batches if len(batches) <= BATCHES else by_epoch(batches)
    names = [f"{b.epoch + 1}.{b.batch + 1}" if len(batches) <= BATCHES else f"{b.epoch + 1}" for b in points]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.66, 0.34], vertical_spacing=0.08)
    figure.add_scatter(
        x=names,
        y=[b.mean for b in points],
        error_y={
            "type": "data",
            "array": [b.deviation for b in points],
            "thickness": 1,
            "width": 4,
            "color": CHAFF,
        },
        mode="lines+markers",
        line={"color": GRAIN, "width": 2},
        marker={"size": 8, "color": GRAIN},
        customdata=[[b.scored, b.deviation, b.library_version] for b in points],
        hovertemplate="batch %{x}: mean %{y:.2f} ± %{customdata[1]:.2f} over tasks<br>%{customdata[0]:,} scored "
        "rollouts, library version %{customdata[2]}<extra></extra>",
        row=1,
        col=1,
    )
    figure.add_bar(
        x=names,
        y=[b.informative / b.groups for b in points],
        marker=_look(1),
        customdata=[[b.informative, b.groups] for b in points],
        hovertemplate="batch %{x}: %{customdata[0]} of %{customdata[1]} groups informative<extra></extra>",
        row=2,
        col=1,
    )
    frame(figure, 360)
    figure.update_layout(showlegend=False)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_xaxes(title="Epoch.batch" if len(batches) <= BATCHES else "Epoch", row=2, col=1)
    figure.update_yaxes(title="Mean reward", row=1, col=1)
    figure.update_yaxes(title="Informative", tickformat=".0%", range=[0, 1.05], row=2, col=1)
    draw(figure, key, "Mean reward and share of informative groups, batch by batch")


def by_epoch(batches: Sequence[BatchFigure]) -> list[BatchFigure]:
    """The batches of an epoch taken together."""
    epochs: dict[int, list[BatchFigure]] = {}
    for each in batches:
        epochs.setdefault(each.epoch, []).append(each)
    found = []
    for epoch, own in epochs.items():
        scored = [b for b in own if b.mean is not None]
        count = sum(b.scored for b in scored)
        found.append(
            BatchFigure(
                epoch=epoch,
                batch=0,
                library_version=max(b.library_version for b in own),
                groups=sum(b.groups for b in own),
                informative=sum(b.informative for b in own),
                scored=count,
                mean=sum((b.mean or 0.0) * b.scored for b in scored) / count if count else None,
                deviation=sum(b.deviation * b.groups for b in own) / sum(b.groups for b in own),
            )
        )
    return found
