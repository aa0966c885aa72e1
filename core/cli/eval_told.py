"""How `winnow eval` tells what it found: in lines, and never a number without its sample size."""

from __future__ import annotations

from core.cli.desk import one_line, plural, table
from core.proof import COUNTED, PARTLY, ArmKind, ArmResult, Comparison, Effect, Measured, Report, StopWhen
from core.rollout import NO_PRICE


def told(report: Report) -> list[str]:
    """A report in lines."""
    config = report.config
    lines = [
        f"{report.id} is {report.state}: {plural(report.tasks, config.split + ' task')} x {config.samples} rollouts x "
        f"{plural(len(config.seeds), 'seed')} for each arm, with {report.model}.",
        *table([_arm(arm) for arm in report.arms], ARMS),
        *_counted(report),
        *(f"{arm.name}: {arm.label}. {arm.note}".strip() for arm in report.arms if not _plain(arm)),
        *_broken(report),
    ]
    for comparison in report.comparisons:
        lines += ["", *_comparison(comparison, config.stop_when)]
    return [*lines, "", *report.notes, report.method]


PLAIN: tuple[ArmKind, ...] = ("none", "version")
"""Kinds of arms that need no explanation, where they are named for what they are."""
ARMS = (
    "arm",
    "mean",
    "pass@k",
    "content",
    "tasks",
    "lessons",
    "tokens injected",
    "calls an answer",
    "calls",
    "tokens",
    "cost",
    "unscored",
    "errors",
    "cut",
)


def _plain(arm: ArmResult) -> bool:
    """Whether its name says what it is: `version:3` does, `version:newest` and a name of one's own do not."""
    return arm.kind in PLAIN and arm.name.replace(":", " ") in (arm.kind, arm.label)


def _counted(report: Report) -> list[str]:
    """What the numbers of the arms are of."""
    lines = []
    if any(arm.pass_at for arm in report.arms):
        lines.append(f"pass@k is unbiased; a success is a reward of {report.threshold:g} or more.")
    if any(arm.partly for arm in report.arms):
        lines.append(PARTLY)
    return [*lines, COUNTED]


def _broken(report: Report) -> list[str]:
    """Why rollouts broke off, and how they are made up for."""
    if not report.broken:
        return []
    lines = [
        f"{arm.name}: {plural(arm.errors, 'rollout')} broke off{': ' if arm.why else ''}{arm.why}."
        for arm in report.arms
        if arm.errors and arm.asked
    ]
    return [*lines, f"Make up for them: winnow eval start --resume {report.id} --retry-failed"]


def _arm(arm: ArmResult) -> tuple[object, ...]:
    tokens = arm.prompt_tokens + arm.completion_tokens
    cost = f"${arm.cost_usd:,.4f}" if arm.priced else NO_PRICE
    return (
        arm.name,
        _number(arm.mean) + arm.of(arm.scored_tasks),
        " ".join(f"@{k} {p:.2f}{arm.of(arm.pass_tasks.get(k))}" for k, p in arm.pass_at.items()) or "-",
        _number(arm.content) + arm.of(arm.content_tasks),
        arm.tasks,
        arm.lessons,
        f"{arm.tokens_injected:.0f}",
        f"{arm.calls_per_answer:g}",
        *((f"{arm.calls:,}", f"{tokens:,}", cost) if arm.asked else "---"),
        arm.unscored,
        arm.errors,
        arm.cut,
    )


def _comparison(comparison: Comparison, stop_when: StopWhen) -> list[str]:
    lines = [f"{comparison.arm} against {comparison.baseline}: {effect_line(comparison.effect)}"]
    if comparison.in_sample:
        lines.append(f"  {plural(comparison.in_sample, 'task')} left out: a lesson was learned from them.")
    if len(comparison.by_domain) > 1:
        lines += [f"  {domain}: {effect_line(e)}" for domain, e in comparison.by_domain.items()]
    lines += [f"  seed {seed}: {effect_line(e)}" for seed, e in comparison.by_seed.items()]
    if comparison.content is not None:
        lines.append(f"  content alone: {effect_line(comparison.content)}")
    lines += [f"  Look closer: {flag}" for flag in comparison.flags]
    if comparison.looks and comparison.looks[-1].stopped:
        why = (
            "it will hardly be shown to be better"
            if stop_when == "hopeless"
            else "decided, and so rather too large"
        )
        lines.append(f"  Stopped after {comparison.looks[-1].tasks} tasks: {why}.")
    if comparison.p_over_looks is not None:
        lines.append(
            f"  p over all {plural(len(comparison.looks), 'look')}: {_chance(comparison.p_over_looks)}."
        )
    return lines


def effect_line(effect: Effect) -> str:
    """`+0.120 (95 % +0.031 to +0.209; p 0.012) on 40 tasks: 18 better, 12 alike, 10 worse`."""
    if effect.mean is None:
        return f"nothing to compare: {plural(effect.unpaired, 'task')} not scored in both arms"
    span = "no interval" if effect.low is None else f"95 % {effect.low:+.3f} to {effect.high:+.3f}"
    p = "" if effect.p_two_sided is None else f"; p {_chance(effect.p_two_sided)}"
    unpaired = f", {effect.unpaired} not scored in both" if effect.unpaired else ""
    return (
        f"{effect.mean:+.3f} ({span}{p}) on {plural(effect.tasks, 'task')}: {effect.wins} better, {effect.ties} alike, "
        f"{effect.losses} worse{unpaired}"
    )


def short_effect(one: Measured | None) -> str:
    """`+0.314 (+0.212 to +0.416)` for a table; a dash where nothing was measured."""
    if one is None or one.effect.mean is None:
        return "-"
    effect = one.effect
    span = "no interval" if effect.low is None else f"{effect.low:+.3f} to {effect.high:+.3f}"
    return f"{effect.mean:+.3f} ({span}; n {effect.tasks})"


def measured_line(one: Measured, beside: str = "") -> str:
    """What was measured of one thing, with its sample size; of what, where it is not what it stands beside."""
    of = f", of {one.subject}" if beside not in ("", one.subject) else ""
    kind = ", on fresh tasks" if one.fresh else ", on the tasks that selected it" if one.selected else ""
    together = (
        f"; {one.tried} tried together, p better corrected {_chance(one.p_adjusted)}" if one.tried > 1 else ""
    )
    return (
        f"{one.evaluation_id}{of}, on version {one.version}, {one.split} tasks x {one.samples} rollouts, "
        f"{one.model}{kind}: {effect_line(one.effect)}{together}"
    )


def tasks_told(report: Report) -> list[str]:
    """What came of each task in each comparison, in lines."""
    lines = []
    for comparison in report.comparisons:
        rows = [
            (r.task_id, r.outcome, _number(r.baseline), _number(r.arm), " ".join((*r.baseline_groups, *r.arm_groups)),
             one_line(r.question, 50))
            for r in comparison.rows
        ]  # fmt: skip
        headers = ("task", "outcome", comparison.baseline, comparison.arm, "groups", "question")
        lines += ["", f"{comparison.arm} against {comparison.baseline}, task by task:", *table(rows, headers)]
    return lines


def _chance(p: float | None) -> str:
    """A p value; it is never 0."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
