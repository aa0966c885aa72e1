"""Two runs beside each other: their sums, who wins how often, and one task in both."""

from __future__ import annotations

from typing import Literal

from core.figures import RunFigure, TaskPair
from core.workspace.versus import LEAST, Difference, Versus
from pages.parts import frame, safe
from pages.parts.safe import Markup, joined, markup

SAME = 1e-9
"""Rewards that differ by no more are equal."""

Line = tuple[str, str, str, str]
"""Name, A, B, and B minus A."""


def sums(found: Versus) -> None:
    """What both runs took and gave, side by side."""
    rows = joined(
        markup(
            '<tr><td>{name}</td><td class="num">{a}</td><td class="num">{b}</td><td class="num">{moved}</td></tr>',
            name=name,
            a=a,
            b=b,
            moved=moved,
        )
        for name, a, b, moved in _lines(found.a, found.b)
    )
    safe.html(
        '<div class="w-scroll w-sums"><table class="w-table"><tr><th></th><th class="num">A · {a}</th>'
        '<th class="num">B · {b}</th><th class="num">B − A</th></tr>{rows}</table></div>',
        a=found.a.id,
        b=found.b.id,
        rows=rows,
    )


def _lines(a: RunFigure, b: RunFigure) -> list[Line]:
    return [
        _line("Tasks", a.tasks, b.tasks, "{:,}"),
        _line("Rollouts", a.rollouts, b.rollouts, "{:,}"),
        _line("Mean reward, all its tasks", a.mean, b.mean, "{:.3f}"),
        _line(
            "Informative groups", _share(a.informative, a.sampled), _share(b.informative, b.sampled), "{:.0%}"
        ),
        _line(
            "Rollouts that broke off", _share(a.errors, a.rollouts), _share(b.errors, b.rollouts), "{:.1%}"
        ),
        _line(
            "Tool calls that worked",
            _share(a.tool_succeeded, a.tool_calls),
            _share(b.tool_succeeded, b.tool_calls),
            "{:.0%}",
        ),
        _line("Tool calls", a.tool_calls, b.tool_calls, "{:,}"),
        _line("Model calls", a.calls, b.calls, "{:,}"),
        _line("Tokens in", a.prompt_tokens, b.prompt_tokens, "{:,}"),
        _line("Tokens out", a.completion_tokens, b.completion_tokens, "{:,}"),
        _line("Cost", a.cost_usd, b.cost_usd, "${:,.4f}"),
    ]


def _line(name: str, a: float | None, b: float | None, form: str) -> Line:
    one, other = ("none" if v is None else form.format(v) for v in (a, b))
    if a is None or b is None:
        return name, one, other, ""
    if one == other:
        return name, one, other, "="
    return name, one, other, ("+" if b > a else "−") + form.format(abs(b - a))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def verdict(overall: Difference) -> None:
    """The difference over all shared tasks in one line, and who wins how often."""
    interval = (
        f"95 % interval over tasks {overall.low:+.3f} to {overall.high:+.3f}"
        if overall.low is not None and overall.high is not None
        else f"fewer than {LEAST} shared tasks: no interval"
    )
    frame.stats(
        [
            (f"{overall.difference:+.3f}", f"mean reward of B − A; {interval}"),
            (f"{overall.wins:,}", "tasks that B does better"),
            (f"{overall.ties:,}", "ties"),
            (f"{overall.losses:,}", "tasks that B does worse"),
        ]
    )
    pieces = joined(
        markup(
            '<i class="{look}" style="width:{share}%"></i>', look=look, share=f"{100 * n / overall.tasks:.3f}"
        )
        for n, look in (
            (overall.wins, "w-grain-fill"),
            (overall.ties, "w-wait-fill"),
            (overall.losses, "w-chaff-fill"),
        )
        if n
    )
    safe.html(
        '<div class="w-winloss" role="img" aria-label="{said}">{pieces}</div>',
        said=f"{overall.wins} wins, {overall.ties} ties, {overall.losses} losses of B",
        pieces=pieces,
    )


def pair_card(pair: TaskPair) -> Markup:
    moved = pair.b - pair.a
    chip = (
        frame.chip("tie", "quiet")
        if abs(moved) <= SAME
        else frame.chip(f"B {'+' if moved > 0 else '−'}{abs(moved):.2f}", "good" if moved > 0 else "bad")
    )
    return markup(
        '<div class="top"><span class="id">{task}</span>{chip}<span class="w-chip quiet">{domain}</span>'
        '<span class="end">A {a} ({n} scored) · B {b} ({m} scored)</span></div>'
        '<div class="text clamp" dir="auto">{question}</div>',
        task=pair.task_id,
        chip=chip,
        domain=pair.domain,
        a=f"{pair.a:.2f}",
        n=pair.scored_a,
        b=f"{pair.b:.2f}",
        m=pair.scored_b,
        question=safe.short(pair.question, 200),
    )


def kind(pair: TaskPair) -> Literal["wins", "ties", "losses"]:
    """What B makes of a task."""
    moved = pair.b - pair.a
    return "ties" if abs(moved) <= SAME else "wins" if moved > 0 else "losses"


def same(title: str, text: str) -> None:
    """There is nothing to tell apart, said clearly."""
    safe.html('<div class="w-same"><h3>{title}</h3><p>{text}</p></div>', title=title, text=text)
