"""A report as one HTML file that can be sent around: no script, nothing from elsewhere, foreign text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from core.evaluation.markup import (
    HEAD,
    SIGNS,
    STYLE,
    Column,
    chance,
    number,
    reach,
    span,
    strip,
    table,
    verdict,
)
from core.proof import COUNTED, PARTLY, ArmResult, Comparison, Effect, Report, StopWhen, beside
from core.rollout import NO_PRICE

ROWS = 2_000
"""Tasks of one comparison that are listed; the JSON form has all of them."""
SAID = {"better": "is better than", "worse": "is worse than", "unclear": "cannot be told from"}

ARMS: tuple[Column, ...] = (
    ("Arm", ""),
    *((name, "n") for name in ("Tasks", "Mean", "Content", "Lessons", "Tokens injected", "Calls an answer")),
    *((name, "n") for name in ("Calls", "Tokens", "Cost", "Unscored", "Errors", "Cut")),
)
EFFECTS: tuple[Column, ...] = (
    ("Arm", ""),
    *((name, "n") for name in ("Difference", "95 % interval", "p", "p better", "Better", "Alike", "Worse")),
    *((name, "n") for name in ("Tasks", "Not paired", "Learned from")),
)


def as_html(report: Report, *, written: str = "") -> str:
    """The whole report; `written` says when and by what it was written."""
    title = f"Evaluation {escape(report.id)}"
    parts = [
        f"{HEAD}<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        f'<p class="lead">{escape(_lead(report))}</p>',
        *(f'<p class="flag">{escape(note)}</p>' for note in report.notes),
        *_against(report.comparisons),
        *_arms(report),
    ]
    for comparison in report.comparisons:
        parts += _comparison(comparison, report.config.stop_when)
    parts.append(f"<h2>Method</h2><p>{escape(report.method)}</p><footer>{escape(written)}</footer>")
    return "\n".join([*parts, "</body></html>\n"])


def _lead(report: Report) -> str:
    config = report.config
    n = len(config.seeds)
    seeds = f"{n} seed{'s' if n > 1 else ''} ({', '.join(map(str, config.seeds))})"
    status = "" if report.status == "done" else " Not finished: an interim look."
    return (
        f"{report.tasks:,} {config.split} tasks, {config.samples} rollouts of each for each arm and seed, {seeds}, "
        f"with {report.model}.{status}"
    )


# --- against the baseline ---


def _against(comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not comparisons:
        return
    yield f"<h2>Against {escape(comparisons[0].baseline)}</h2>"
    most = reach(c.effect for c in comparisons)
    yield f"<ul>{''.join(_sentence(c, most) for c in comparisons)}</ul>"
    yield table(EFFECTS, [row for c in comparisons for row in _effects(c)])


def _sentence(c: Comparison, most: float) -> str:
    effect, look = c.effect, verdict(c.effect)
    if effect.mean is None:
        said = f"{c.arm} against {c.baseline}: no task was scored in both."
    else:
        how = f"{number(effect.mean, sign=True)} (95 % {span(effect)}, p {chance(effect.p_two_sided)})"
        said = f"{SIGNS[look]} {c.arm} {SAID[look]} {c.baseline}: {how} on {effect.tasks:,} tasks."
    return f'<li class="{look}">{escape(said)}{strip(effect, most)}</li>'


def _effects(c: Comparison) -> Iterator[tuple[str, ...]]:
    yield c.arm, *_effect(c.effect), f"{c.in_sample:,}"
    for domain, effect in c.by_domain.items():
        yield f"{c.arm}: {domain}", *_effect(effect), ""


def _effect(effect: Effect) -> tuple[str, ...]:
    return (
        number(effect.mean, sign=True),
        span(effect),
        chance(effect.p_two_sided),
        chance(effect.p_greater),
        *(f"{n:,}" for n in (effect.wins, effect.ties, effect.losses, effect.tasks, effect.unpaired)),
    )


# --- the arms by themselves ---


def _arms(report: Report) -> Iterator[str]:
    yield "<h2>The arms</h2>"
    yield table(ARMS, map(_arm, report.arms))
    yield f'<p class="note">{COUNTED}{f" {PARTLY}" if any(a.partly for a in report.arms) else ""}</p>'
    about = ((a.name, f"{a.label}. {a.note}".strip()) for a in report.arms if a.label != a.name)
    yield f"<ul class='plain'>{''.join(f'<li>{escape(name)}: {escape(said)}</li>' for name, said in about)}</ul>"
    yield from _broken(report)
    if passes := [a for a in report.arms if a.pass_at]:
        ks = sorted({k for a in passes for k in a.pass_at})
        yield f'<p class="note">pass@k, unbiased; a success is a reward of {report.threshold:g} or more.</p>'
        head = (("Arm", ""), *((f"@{k}", "n") for k in ks))
        yield table(head, [(a.name, *(_pass(a, k) for k in ks)) for a in passes])


def _broken(report: Report) -> Iterator[str]:
    """Why rollouts broke off, and how they are made up for."""
    if report.broken:
        arms = [a for a in report.arms if a.errors and a.asked]
        said = [f"{a.name}: {a.errors:,} broke off{': ' if a.why else ''}{a.why}." for a in arms]
        said.append(f"winnow eval start --resume {report.id} --retry-failed makes up for them.")
        yield f"<ul class='plain'>{''.join(f'<li>{escape(line)}</li>' for line in said)}</ul>"


def _pass(a: ArmResult, k: int) -> str:
    return number(a.pass_at[k]) + a.of(a.pass_tasks.get(k)) if k in a.pass_at else "-"


def _arm(a: ArmResult) -> tuple[str, ...]:
    cost = f"${a.cost_usd:,.4f}" if a.priced else NO_PRICE
    took = (f"{a.calls:,}", f"{a.prompt_tokens + a.completion_tokens:,}", cost)
    return (
        a.name,
        f"{a.tasks:,}",
        number(a.mean) + a.of(a.scored_tasks),
        number(a.content) + a.of(a.content_tasks),
        f"{a.lessons:,}",
        f"{a.tokens_injected:.0f}",
        f"{a.calls_per_answer:g}",
        *(took if a.asked else ("-", "-", "-")),
        *(f"{n:,}" for n in (a.unscored, a.errors, a.cut)),
    )


# --- one arm more closely ---


def _comparison(comparison: Comparison, stop_when: StopWhen) -> Iterator[str]:
    yield f"<h2>{escape(comparison.arm)} against {escape(comparison.baseline)}</h2>"
    yield from (f'<p class="flag">{escape(flag)}</p>' for flag in comparison.flags)
    if comparison.content is not None:
        said = f"{number(comparison.content.mean, sign=True)} ({span(comparison.content)})"
        said += f" on {comparison.content.tasks:,} tasks"
        yield f"<p>The content part alone: {escape(said)}</p>"
    if comparison.labels:
        rows = [
            (
                r.domain,
                r.label,
                f"{r.tasks:,}",
                number(r.baseline) + beside(r.baseline_tasks, r.tasks),
                number(r.arm) + beside(r.arm_tasks, r.tasks),
            )
            for r in comparison.labels
        ]
        head = (
            ("Domain", ""),
            ("Right answer", ""),
            ("Tasks", "n"),
            (comparison.baseline, "n"),
            (comparison.arm, "n"),
        )
        yield table(head, rows)
    yield from _looks(comparison, "above" if stop_when == "hopeless" else "at or below")
    yield from _tasks(comparison)


def _looks(comparison: Comparison, side: str) -> Iterator[str]:
    if not comparison.looks:
        return
    rows = [
        (f"{look.tasks:,}", chance(look.p), f"{look.threshold:.4f}", "stopped" if look.stopped else "")
        for look in comparison.looks
    ]
    yield table((("After tasks", "n"), ("p", "n"), (f"Stops {side}", "n"), ("", "")), rows)
    if comparison.p_over_looks is not None:
        yield f"<p>p over all looks: {escape(chance(comparison.p_over_looks))}</p>"


def _tasks(comparison: Comparison) -> Iterator[str]:
    rows = [
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
    head = (
        *(("Task", ""), ("Question", "q"), ("Domain", "")),
        *((comparison.baseline, "n"), (comparison.arm, "n"), ("Outcome", ""), ("Groups", "")),
    )
    yield f"<details><summary>{len(comparison.rows):,} tasks</summary>{table(head, rows)}"
    if len(comparison.rows) > ROWS:
        yield f"<p>The first {ROWS:,} of {len(comparison.rows):,}; the JSON form has all of them.</p>"
    yield "</details>"
