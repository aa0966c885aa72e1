"""A report as one HTML file that can be sent around: no script, nothing from elsewhere, foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from core.proof import ArmResult, Comparison, Effect, Report, StopWhen

ROWS = 2_000
"""Tasks of one comparison that are listed; the JSON form has all of them."""

ARMS = (
    *("arm", "what it is", "tasks", "mean", "pass@k", "content", "lessons", "tokens injected"),
    *("calls per answer", "calls", "tokens", "cost", "unscored", "errors", "cut"),
)
EFFECTS = (
    *("arm", "difference", "95 % interval", "p", "p better", "wins", "ties", "losses"),
    *("tasks", "not paired", "in sample"),
)

STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid #8886;padding:.25rem .6rem;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
.q{max-width:34rem;overflow-wrap:anywhere}
.flag{border-left:4px solid #b45309;padding:.2rem .8rem;margin:.4rem 0}
svg{display:block;margin:.3rem 0 1rem;max-width:100%}
svg text{font:12px system-ui,sans-serif;fill:currentColor}
svg line,svg rect{stroke:currentColor;fill:currentColor}
"""
HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width">'
)


def as_html(report: Report, *, written: str = "") -> str:
    """The whole report; `written` says when and by what it was written."""
    title = f"Evaluation {escape(report.id)}"
    parts = [
        f"{HEAD}<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{escape(_lead(report))}</p>",
        *(f'<p class="flag">{escape(note)}</p>' for note in report.notes),
        "<h2>Arms</h2>",
        _arms(report.arms),
    ]
    if report.comparisons:
        parts += ["<h2>Against the baseline</h2>", _forest(report.comparisons), _effects(report.comparisons)]
    for comparison in report.comparisons:
        parts += _comparison(comparison, report.config.stop_when)
    parts.append(f"<h2>Method</h2><p>{escape(report.method)}</p><p>{escape(written)}</p></body></html>\n")
    return "\n".join(parts)


def _lead(report: Report) -> str:
    config = report.config
    seeds = f"{len(config.seeds)} seeds ({', '.join(map(str, config.seeds))})"
    return (
        f"{report.tasks:,} {config.split} tasks, {config.samples} rollouts of each for each arm and seed, {seeds}, "
        f"with {report.model}. Status: {report.status}."
    )


def _arms(arms: Sequence[ArmResult]) -> str:
    rows: list[Sequence[str]] = [
        (
            a.name,
            f"{a.label}. {a.note}".strip(),
            f"{a.tasks:,}",
            number(a.mean),
            " ".join(f"@{k} {p:.2f}" for k, p in a.pass_at.items()),
            number(a.content),
            str(a.lessons),
            f"{a.tokens_injected:.0f}",
            f"{a.calls_per_answer:g}",
            *(_took(a) if a.asked else "---"),
            str(a.unscored),
            str(a.errors),
            str(a.cut),
        )
        for a in arms
    ]
    return _table(ARMS, rows)


def _took(arm: ArmResult) -> tuple[str, ...]:
    return f"{arm.calls:,}", f"{arm.prompt_tokens + arm.completion_tokens:,}", f"${arm.cost_usd:.4f}"


def _effects(comparisons: Sequence[Comparison]) -> str:
    rows: list[tuple[str, ...]] = []
    for c in comparisons:
        for name, effect in [(c.arm, c.effect), *((f"{c.arm}: {d}", e) for d, e in c.by_domain.items())]:
            rows.append((name, *_effect(effect), str(c.in_sample) if name == c.arm else ""))
    return _table(EFFECTS, rows)


def _effect(effect: Effect) -> tuple[str, ...]:
    return (
        number(effect.mean, sign=True),
        span(effect),
        chance(effect.p_two_sided),
        chance(effect.p_greater),
        *(str(n) for n in (effect.wins, effect.ties, effect.losses, effect.tasks, effect.unpaired)),
    )


def _comparison(comparison: Comparison, stop_when: StopWhen) -> Iterable[str]:
    yield f"<h2>{escape(comparison.arm)} against {escape(comparison.baseline)}</h2>"
    yield from (f'<p class="flag">{escape(flag)}</p>' for flag in comparison.flags)
    if comparison.content is not None:
        yield (
            "<p>The content part alone: "
            + escape(f"{number(comparison.content.mean, sign=True)} ({span(comparison.content)})")
            + "</p>"
        )
    if comparison.labels:
        rows = [
            (r.domain, r.label, str(r.tasks), number(r.baseline), number(r.arm)) for r in comparison.labels
        ]
        yield _table(("domain", "right answer", "tasks", comparison.baseline, comparison.arm), rows)
    if comparison.looks:
        looks = [
            (str(look.tasks), chance(look.p), f"{look.threshold:.4f}", "stopped" if look.stopped else "")
            for look in comparison.looks
        ]
        side = "stops above" if stop_when == "hopeless" else "stops at or below"
        yield _table(("tasks", "p", side, ""), looks)
    if comparison.p_over_looks is not None:
        yield f"<p>p over all looks: {escape(chance(comparison.p_over_looks))}</p>"
    told = [
        (
            r.task_id,
            r.question,
            r.domain,
            number(r.baseline),
            number(r.arm),
            r.outcome,
            ", ".join((*r.baseline_groups, *r.arm_groups)),
        )
        for r in comparison.rows[:ROWS]
    ]
    head = ("task", "question", "domain", comparison.baseline, comparison.arm, "outcome", "groups")
    more = len(comparison.rows) - len(told)
    yield f"<details><summary>{len(comparison.rows):,} tasks</summary>{_table(head, told)}" + (
        f"<p>{more:,} more tasks are in the JSON form.</p></details>" if more > 0 else "</details>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    plain = text.replace(",", "").lstrip("+-$").replace(".", "", 1)
    return f'<td class="{"n" if plain.isdigit() else "q"}">{escape(text)}</td>'


def _forest(comparisons: Sequence[Comparison]) -> str:
    """The differences with their intervals, as a picture."""
    drawn = [c for c in comparisons if c.effect.mean is not None]
    if not drawn:
        return ""
    ends = [abs(v) for c in drawn for v in (c.effect.mean, c.effect.low, c.effect.high) if v is not None]
    most = max([*ends, 0.05]) * 1.1
    left, width, height = 260.0, 420.0, 26.0

    def at(value: float) -> str:
        return f"{left + width * (value + most) / (2 * most):.1f}"

    lines = []
    for i, c in enumerate(drawn):
        y = height * (i + 0.7)
        e = c.effect
        low, high = (e.mean if v is None else v for v in (e.low, e.high))
        lines.append(
            f'<text x="0" y="{y + 4:.1f}">{escape(c.arm[:38])}</text>'
            f'<line x1="{at(low or 0)}" x2="{at(high or 0)}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<rect x="{float(at(e.mean or 0)) - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>'
        )
    tall = height * (len(drawn) + 1)
    axis = (
        f'<line x1="{at(0)}" x2="{at(0)}" y1="0" y2="{tall - 16:.1f}" stroke-dasharray="3 3"/>'
        f'<text x="{at(0)}" y="{tall - 2:.1f}" text-anchor="middle">0</text>'
    )
    return (
        f'<svg viewBox="0 0 {left + width:.0f} {tall:.0f}" width="{left + width:.0f}" role="img"'
        f' aria-label="Differences with 95 % intervals">{axis}{"".join(lines)}</svg>'
    )


def number(value: float | None, *, sign: bool = False) -> str:
    """A number as it is shown; a dash where there is none."""
    return "-" if value is None else f"{value:+.3f}" if sign else f"{value:.3f}"


def chance(p: float | None) -> str:
    """A p value as it is shown; it is never 0."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def span(effect: Effect) -> str:
    """The interval as it is shown."""
    if effect.low is None or effect.high is None:
        return "-"
    return f"{effect.low:+.3f} to {effect.high:+.3f}"
