"""What an evaluation would do and take, whether it has enough tasks, and what its splits share: beside its form."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from core.errors import WinnowError
from core.proof import EvaluationConfig, Overlaps
from core.rollout import Usage
from core.workspace import Workspace
from core.workspace.estimating import Bounds, duration_s
from core.workspace.evaluation_plans import EvaluationPlan
from core.workspace.preparing import Size, expected, size
from pages.parts import alongside, frame, safe, session, words
from pages.parts.guard import red_line
from pages.parts.safe import joined, markup

PAIRS = 20
"""Pairs of tasks that are shown."""
ASSUMED = ""
NEWEST = 30
"""Evaluations that a spread can be taken from."""


class Outlook(NamedTuple):
    """A plan, with what it may take."""

    plan: EvaluationPlan
    takes: Bounds


def outlook(ws: Workspace, config: EvaluationConfig) -> Outlook:
    """What an evaluation would do.

    Raises:
        InputError, NotFoundError: as `Evaluating.plan`.
    """
    happened = ws.store.events.mark("claim")  # what is looked at changes no plan
    file = ws.folder / "winnow.db"
    stamp = f"{file}:{file.stat().st_ino}:{happened}:{ws.store.tasks.stamp()}"
    return _outlook(ws, stamp, config.canonical())


@st.cache_data(max_entries=20, show_spinner=False)
def _outlook(_ws: Workspace, stamp: str, config: str) -> Outlook:
    plan = _ws.evaluating.plan(EvaluationConfig.model_validate_json(config))
    return Outlook(plan, expected(_ws.store, _ws.models, plan))


def draw(ws: Workspace, found: Outlook) -> None:
    """Tasks, rollouts, calls, tokens, money and time."""
    plan, takes = found.plan, found.takes
    frame.stats(
        [
            (f"{len(plan.tasks):,}", f"{plan.config.split} tasks"),
            (f"{plan.rollouts:,}", "rollouts"),
            (f"{takes.high.calls:,}", "calls at most"),
        ]
    )
    least, most = takes.low, takes.high
    frame.facts(
        [
            ("Model", plan.model),
            ("Tokens", words.between(_tokens(least), _tokens(most))),
            ("Cost", words.costs(least, most, free=plan.config.free)),
            ("Time", _time(ws, found)),
            ("Domains", ", ".join(f"{n} {domain}" for domain, n in list(plan.by_domain.items())[:12])),
        ]
    )
    for note in plan.notes:
        safe.html('<div class="w-warn">{note}</div>', note=note)
    if plan.finished:
        frame.note(f"{plan.resumes} did exactly this. Another seed makes it a new evaluation.")
    elif plan.resumes:
        frame.note(
            f"{plan.resumes} asked for exactly this and is not finished: it goes on, and nothing is paid twice."
        )


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _time(ws: Workspace, found: Outlook) -> str:
    """From what rollouts of the model took before."""
    pace = ws.store.runs.pace(found.plan.model)
    if pace is None:
        return "not known: nothing was sampled with this model yet"
    endpoint = ws.models.get(found.plan.config.endpoint)
    low, high = (words.span(s) for s in duration_s(found.takes, endpoint, pace[0]))
    return f"about {low if low == high else f'{low} to {high}'}, at {pace[0]:.1f} s a call"


def start_label(found: Outlook) -> str:
    """What the button says: it names the cost."""
    plan, most = found.plan, found.takes.high
    if plan.finished:
        return f"Open {plan.resumes}"
    if plan.resumes:
        return f"Go on with {plan.resumes}"
    money = f", {words.money(most.cost_usd)}" if most.cost_usd else ""
    return f"Start: at most {words.plural(most.calls, 'call')}{money}"


# --- is it enough? ---


def enough(ws: Workspace, found: Outlook) -> None:
    """How many tasks find the smallest difference that matters, and what the tasks at hand find."""
    frame.section("Is it enough?", "tasks that a difference needs to be seen")
    done, _ = ws.store.evaluations.page(limit=NEWEST)
    sources = [row.id for row in done if row.status == "done" and len(row.arms) > 1]
    one, two = st.columns(2)
    effect = one.number_input(
        "Smallest difference that matters", 0.005, 1.0, 0.1, 0.01, format="%.3f", key="eval_effect"
    )
    source = two.selectbox(
        "How much tasks differ",
        [ASSUMED, *sources],
        key="eval_spread",
        format_func=lambda s: f"as in {s}" if s else "as is usual",
    )
    one_sided = st.checkbox(
        "Only better counts (one-sided, level 0.10, as the gate does)", key="eval_one_sided"
    )
    config = found.plan.config
    try:
        spread = ws.evaluating.spread(source) if source else None
        wanted = size(
            effect,
            spread,
            samples=config.samples * len(config.seeds),
            level=0.1 if one_sided else 0.05,
            sides=1 if one_sided else 2,
            at=len(found.plan.tasks),
        )
    except WinnowError as e:
        red_line(e)
        return
    if source and spread is None:
        frame.note(f"{source} has too few rollouts to tell how much tasks differ: the usual is assumed.")
    _enough(wanted, len(found.plan.tasks))


def _enough(wanted: Size, tasks: int) -> None:
    verdict = (
        f"Your {words.plural(tasks, 'task')} would do."
        if tasks >= wanted.tasks
        else f"Yours has {tasks:,}: take more tasks, or expect only larger differences to be seen."
    )
    safe.html(
        '<p class="w-enough"><b>{tasks}</b> × {samples} rollouts in each arm find {effect} with a chance of {power}. '
        "{verdict}</p>",
        tasks=words.plural(wanted.tasks, "task"),
        samples=wanted.samples,
        effect=f"{wanted.effect:+.3f}",
        power=f"{wanted.power:.0%}",
        verdict=verdict,
    )
    safe.html(
        '<div class="w-power" role="img" aria-label="Chance to see it, by the number of tasks">{rows}</div>',
        rows=joined(
            markup(
                '<div class="{own}"><span>{n} tasks</span><span class="track"><i class="w-grain-fill"'
                ' style="width:{share}%"></i></span><span>{share}%</span></div>',
                own="own" if n == tasks else "",
                n=f"{n:,}",
                share=f"{100 * p:.0f}",
            )
            for n, p in sorted(wanted.power_at.items())
        ),
    )
    frame.note(
        f"Standard deviation of a task's true difference {wanted.between:.2f}, of one rollout {wanted.within:.2f}. "
        "Power of the paired t test."
    )


# --- what the splits share ---


def overlap(ws: Workspace) -> None:
    """Whether train, trial and final share a task, looked for when asked: embeddings take their time."""
    frame.section("Do the splits share tasks?", "what teaches must not prove")
    key = f"overlap {ws.store.tasks.stamp()}"
    now = alongside.watched(ws, key, "Comparing the tasks")
    refusal = session.refusal("reviewer")
    if now.state in ("none", "failed") and st.button(
        "Check the splits",
        key="eval_overlap",
        icon=":material/join_inner:",
        disabled=bool(refusal),
        help=frame.refused(refusal),
    ):
        alongside.begin(ws, key, "eval", "overlap")
    if now.state == "done":
        _overlaps(Overlaps.read(now.answer))


def _overlaps(found: Overlaps) -> None:
    counts = ", ".join(f"{n:,} {split}" for split, n in found.tasks.items())
    same = words.plural(len(found.same), "pair")
    frame.note(
        f"{counts}: {same} with the same text, {len(found.near)} near"
        + (f" (compared by {found.compared_by})." if found.compared_by else ".")
    )
    if found.same:
        red_line(
            "The same text stands in two splits: what teaches would prove. Import those tasks anew into one split."
        )
    rows = joined(
        markup(
            '<tr><td>{what}</td><td>{a}<div class="w-note">{a_split}</div></td><td>{b}<div class="w-note">'
            '{b_split}</div></td><td><span dir="auto">{text}</span></td></tr>',
            what="same text" if one.by != "similarity" else f"{one.similarity:.2f} alike",
            a=safe.short(one.a, 40),
            a_split=one.a_split,
            b=safe.short(one.b, 40),
            b_split=one.b_split,
            text=safe.short(one.text, 120),
        )
        for one in (*found.same, *found.near)[:PAIRS]
    )
    if rows:
        with st.expander("The pairs, the most alike first"):
            safe.html(
                '<div class="w-scroll"><table class="w-table"><tr><th></th><th>Task</th><th>And</th><th>Question</th>'
                "</tr>{rows}</table></div>",
                rows=rows,
            )
            frame.note(
                "Near is a hint: tasks made from one template are near, and may still be different ones."
            )
    if found.note:
        frame.note(found.note)
