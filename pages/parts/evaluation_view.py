"""The report of an evaluation at a glance: what it found in one sentence an arm, and the numbers of each arm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.proof import COUNTED, PARTLY, ArmResult, Comparison, Effect, Report
from core.rollout import NO_PRICE
from core.workspace import Workspace
from pages.parts import evaluation_charts, frame, measured, number_tables, safe, session, words
from pages.parts.safe import Markup, joined, markup

DRAWN = 40
"""Differences that are said in a sentence and drawn; the table has all."""


def lead(report: Report) -> str:
    config = report.config
    return (
        f"{words.plural(report.tasks, config.split + ' task')}, {config.samples} rollouts of each for each arm and "
        f"seed ({words.plural(len(config.seeds), 'seed')}), with {report.model}."
    )


def downloads(ws: Workspace, report: Report) -> None:
    """The report as one HTML file to share, and as JSON."""
    threshold = report.threshold
    with st.container(horizontal=True, vertical_alignment="center", key="evaluation_downloads"):
        st.download_button(
            "HTML to share",
            partial(_html, ws, report.id, threshold),
            f"{report.id}.html",
            "text/html",
            key="evaluation_html",
            icon=":material/download:",
            on_click="ignore",
            help="One file without any script: it opens anywhere and asks nobody.",
        )
        st.download_button(
            "JSON",
            partial(_json, report),
            f"{report.id}.json",
            "application/json",
            key="evaluation_json",
            icon=":material/data_object:",
            on_click="ignore",
        )
        st.page_link(
            "pages/prove/new_evaluation.py",
            label="Again with other settings",
            icon=":material/restart_alt:",
            query_params={"from": report.id},
        )


def _html(ws: Workspace, evaluation_id: str, threshold: float) -> bytes:
    return ws.evaluating.html(evaluation_id, threshold).encode("utf-8", "replace")


def _json(report: Report) -> bytes:
    return report.model_dump_json(indent=2).encode("utf-8", "replace")


# --- against the baseline ---


def found(report: Report) -> None:
    """Each comparison in a sentence, all of them as a picture, and what to look at more closely."""
    baseline = report.config.arms[0].name
    if report.status != "done":
        frame.note(
            "Not finished: an interim look. Who decides by one of several looks is wrong more often than p says."
        )
    if any(arm.kind == "without" for arm in report.config.arms):
        frame.note("An arm that leaves a lesson out and does worse says that the lesson helps.")
    if not report.comparisons:
        frame.note("It has one arm, so there is nothing to compare.")
        return
    frame.section(f"Against {baseline}", "paired by task, with 95 % intervals over tasks")
    shown = _foremost(report.comparisons)
    safe.html(
        '<ul class="w-found-list">{lines}</ul>',
        lines=joined(
            markup(
                '<li class="{look}">{chip} {said}</li>',
                look=measured.verdict(c.effect),
                chip=measured.chip(c.effect),
                said=measured.say(c.arm, baseline, c.effect),
            )
            for c in shown
        ),
    )
    evaluation_charts.differences([(c.arm, c.effect) for c in shown], baseline, "evaluation_differences")
    if len(shown) < len(report.comparisons):
        frame.note(
            f"The {len(shown)} largest of {len(report.comparisons):,} differences; the table has all of them."
        )
    for comparison in report.comparisons:
        if comparison.p_over_looks is not None:
            looks = words.plural(len(comparison.looks), "look")
            frame.note(f"{comparison.arm}: p over all {looks}, {measured.chance(comparison.p_over_looks)}.")
        for flag in comparison.flags:
            measured.note(f"{comparison.arm}, look closer: {flag}")
    _effects(report.comparisons)


def _foremost(comparisons: Sequence[Comparison]) -> Sequence[Comparison]:
    """What is said and drawn: all, in their order, or the largest differences where there are too many."""
    if len(comparisons) <= DRAWN:
        return comparisons
    return sorted(comparisons, key=lambda c: -abs(c.effect.mean or 0.0))[:DRAWN]


EFFECTS = (
    ("Arm", ""),
    ("Difference", "num"),
    ("95 % interval", "num"),
    ("p", "num"),
    ("Better", "num"),
    ("Alike", "num"),
    ("Worse", "num"),
    ("Tasks", "num"),
    ("Not paired", "num"),
    ("Learned from", "num"),
)


def _effects(comparisons: Sequence[Comparison]) -> None:
    number_tables.draw(EFFECTS, [_effect_row(c.arm, c.effect, c.in_sample) for c in comparisons])


def _effect_row(name: str, effect: Effect, in_sample: int) -> Markup:
    return number_tables.row(
        ("", number_tables.name(name, sign=measured.SAID[measured.verdict(effect)][0])),
        ("num", words.number(effect.mean, 3, sign=True)),
        ("num", measured.span(effect).removeprefix("95 % ")),
        ("num", measured.chance(effect.p_two_sided)),
        *(
            ("num", f"{n:,}")
            for n in (effect.wins, effect.ties, effect.losses, effect.tasks, effect.unpaired)
        ),
        ("num", f"{in_sample:,}"),
    )


# --- the arms by themselves ---

ARMS = (
    ("Arm", ""),
    ("Mean@k", "num"),
    ("pass@1", "num"),
    ("pass@k", "num"),
    ("Content", "num"),
    ("Tasks", "num"),
    ("Lessons", "num"),
    ("Tokens injected", "num"),
    ("Calls an answer", "num"),
    ("Calls", "num"),
    ("Tokens", "num"),
    ("Cost", "num"),
)


def arms(report: Report) -> None:
    """What came of each arm by itself, and what it took."""
    frame.section(
        "The arms",
        f"Mean@k over tasks; pass@k is unbiased, a success is a reward of {report.threshold:g} or more",
    )
    number_tables.draw(ARMS, [_arm_row(arm) for arm in report.arms])
    frame.note(f"{COUNTED}{f' {PARTLY}' if any(arm.partly for arm in report.arms) else ''}")
    for arm in report.arms:
        if told := _beside(arm):
            frame.note(f"{arm.name}: {told}")
    if passes := [arm for arm in report.arms if len(arm.pass_at) > 1]:
        with st.expander("pass@k by k", icon=":material/show_chart:"):
            _passes(passes)


def _passes(arms: Sequence[ArmResult]) -> None:
    """The curves of as many arms as can be told apart, and the numbers of all."""
    ks = sorted({k for arm in arms for k in arm.pass_at})
    first = (
        sorted(arms, key=lambda a: -max(a.pass_at.values())) if len(arms) > evaluation_charts.CURVES else arms
    )
    evaluation_charts.curves(first[: evaluation_charts.CURVES], "evaluation_passes")
    if len(arms) > evaluation_charts.CURVES:
        frame.note(
            f"The {evaluation_charts.CURVES} highest of {len(arms):,} arms; the table has all of them."
        )
    head = (("Arm", ""), *((f"@{k}", "num") for k in ks))
    rows = [
        number_tables.row(
            ("", number_tables.name(arm.name)),
            *(("num", words.number(arm.pass_at.get(k)) + arm.of(arm.pass_tasks.get(k))) for k in ks),
        )
        for arm in arms
    ]
    number_tables.draw(head, rows)


def _arm_row(arm: ArmResult) -> Markup:
    ks = list(arm.pass_at)
    most = ks[-1] if len(ks) > 1 else None
    tokens = arm.prompt_tokens + arm.completion_tokens
    return number_tables.row(
        ("", number_tables.name(arm.name, note=arm.label)),
        ("num", words.number(arm.mean, 3) + arm.of(arm.scored_tasks)),
        ("num", words.number(arm.pass_at[1]) + arm.of(arm.pass_tasks.get(1)) if 1 in arm.pass_at else ""),
        ("num", f"@{most} {arm.pass_at[most]:.2f}{arm.of(arm.pass_tasks.get(most))}" if most else ""),
        ("num", words.number(arm.content) + arm.of(arm.content_tasks) if arm.content is not None else ""),
        ("num", f"{arm.tasks:,}"),
        ("num", f"{arm.lessons:,}"),
        ("num", f"{arm.tokens_injected:.0f}"),
        ("num", f"{arm.calls_per_answer:g}"),
        ("num", f"{arm.calls:,}" if arm.asked else ""),
        ("num", f"{tokens:,}" if arm.asked else ""),
        ("num", (words.money(arm.cost_usd) if arm.priced else NO_PRICE) if arm.asked else ""),
    )


def _beside(arm: ArmResult) -> str:
    """What must be known beside the numbers of an arm."""
    parts = [
        arm.note,
        f"{words.plural(arm.errors, 'rollout')} broke off{': ' if arm.why else ''}{arm.why}."
        if arm.errors
        else "",
        f"{words.plural(arm.unscored, 'rollout')} could not be scored; neither is 0." if arm.unscored else "",
        f"{words.plural(arm.cut, 'reply')} cut short by the limit of tokens." if arm.cut else "",
        f"Stopped early, after {words.plural(arm.stopped_after, 'task')}: its looks say why."
        if arm.stopped_after
        else "",
    ]
    return " ".join(part for part in parts if part)


def retry(ws: Workspace, report: Report) -> None:
    """Make up for rollouts that broke off, once it is done."""
    broke = report.broken
    if report.status != "done" or not broke:
        return
    refusal = session.refusal("reviewer")
    if st.button(
        safe.label(f"Make up for {words.plural(broke, 'rollout')} that broke off"),
        key="evaluation_retry",
        icon=":material/replay:",
        disabled=bool(refusal),
        help=frame.refused(refusal),
    ):
        session.attempt(lambda: ws.jobs.requeue(report.id, session.me()))
        st.rerun()
