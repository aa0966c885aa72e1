"""What a run would do and take, beside its form: counted once for the same settings, anew when something changed."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.rollout import Usage
from core.settings import Endpoint, RunConfig, free
from core.workspace import Workspace
from core.workspace.estimating import duration_s
from core.workspace.planning import Plan
from core.workspace.rehearsing import Rehearsal, key_of
from pages.parts import frame, safe, words
from pages.parts.once import once
from pages.parts.safe import joined, markup

HELD = "w_run_plan"


@dataclass(frozen=True)
class Outlook:
    """A plan without its tasks, which may be many."""

    plan: Plan
    tasks: int
    key: str
    """What a rehearsal of it goes by."""


def outlook(ws: Workspace, config: RunConfig) -> Outlook:
    """What a run would do.

    Raises:
        InputError, NotFoundError: as `Learning.plan`.
    """
    happened = ws.store.events.mark("claim", "proposal")  # what is looked at or decided on changes no plan
    file = ws.folder / "winnow.db"
    stamp = f"{file}:{file.stat().st_ino}:{happened}:{ws.store.tasks.stamp()}"  # a backup put back is another file
    return _outlook(ws, stamp, config.canonical())


@st.cache_data(max_entries=20, show_spinner=False)
def _outlook(_ws: Workspace, stamp: str, config: str) -> Outlook:
    """Kept for all sessions: a tab that is opened anew asks for the same."""
    plan = _ws.learning.plan(RunConfig.model_validate_json(config))
    return Outlook(plan.model_copy(update={"tasks": ()}), len(plan.tasks), key_of(plan))


def draw(ws: Workspace, found: Outlook, tried: Rehearsal | None) -> None:
    """Tasks, rollouts, calls, tokens, money and time."""
    plan, config = found.plan, found.plan.config
    least, most = plan.estimate.total.low, plan.estimate.total.high
    frame.stats(
        [
            (f"{found.tasks:,}", "task" if found.tasks == 1 else "tasks"),
            (f"{found.tasks * config.group_size * config.epochs:,}", "rollouts"),
            (f"{most.calls:,}", "calls at most"),
        ]
    )
    endpoint = ws.models.get(config.endpoint)
    frame.facts(
        [
            ("Model", plan.model),
            ("Tokens", words.between(_tokens(least), _tokens(most))),
            ("Cost", words.costs(least, most, free=config.free)),
            ("Time", _time(ws, found, endpoint, tried)),
            (
                "Library",
                f"version {plan.library_version}, lessons for {plan.with_lessons:,} of {found.tasks:,} tasks",
            ),
        ]
    )
    _stages(found)
    for note in plan.notes:
        frame.note(note)


def start_label(found: Outlook) -> str:
    """What the button says: it names the cost."""
    plan = found.plan
    if plan.finished:
        return f"Open {plan.resumes}"
    if plan.resumes:
        return f"Go on with {plan.resumes}"
    most = plan.estimate.total.high
    money = f", {words.money(most.cost_usd)}" if most.cost_usd else ""
    return f"Start: at most {words.plural(most.calls, 'call')}{money}"


def known(found: Outlook) -> None:
    """Say so where the same run is there already."""
    plan = found.plan
    if plan.finished:
        frame.note(f"{plan.resumes} did exactly this. Another seed, or a newer library, makes it a new run.")
    elif plan.resumes:
        frame.note(
            f"{plan.resumes} asked for exactly this and is not finished: it goes on, and nothing is paid twice."
        )


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _time(ws: Workspace, found: Outlook, endpoint: Endpoint, tried: Rehearsal | None) -> str:
    """From what rollouts of the model took before, or from the task that was tried."""
    pace = once(
        HELD,
        "pace",
        (str(ws.folder), endpoint.model, ws.store.runs.count()),
        lambda: ws.store.runs.pace(endpoint.model),
    )
    took = [r.duration_s for r in tried.group.rollouts if r.duration_s and not r.error] if tried else []
    seconds = sum(took) / len(took) if took else pace[0] if pace else 0.0
    if not seconds:
        return "not known: nothing was sampled with this model yet; try one task"
    estimate = found.plan.estimate
    low, high = duration_s(estimate.rollouts, endpoint, seconds)
    rest = estimate.judging + estimate.extraction + estimate.gate
    more_low, more_high = duration_s(rest, endpoint, seconds)  # as fast as the rollouts, for want of better
    return f"about {_between(words.span(low + more_low), words.span(high + more_high))}, at {seconds:.1f} s a call"


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _stages(found: Outlook) -> None:
    """Calls and tokens of each stage, where there is more than one."""
    estimate, config = found.plan.estimate, found.plan.config
    stages = (
        ("rollouts", estimate.rollouts, config.endpoint),
        ("judging", estimate.judging, config.judge_endpoint),
        ("extraction", estimate.extraction, config.extraction_endpoint),
        ("trial gate", estimate.gate, config.endpoint),
    )
    used = [stage for stage in stages if stage[1].high.calls]
    if len(used) < 2:
        return
    rows = joined(
        markup(
            '<tr><td>{name}</td><td class="num">{calls}</td><td class="num">{tokens}</td>'
            '<td class="num">{cost}</td></tr>',
            name=name,
            calls=words.between(bounds.low.calls, bounds.high.calls),
            tokens=words.between(_tokens(bounds.low), _tokens(bounds.high)),
            cost=words.cost(bounds.high, free=free(asked)),
        )
        for name, bounds, asked in used
    )
    with st.expander("By stage", icon=":material/stacked_bar_chart:"):
        safe.html(
            '<div class="w-scroll"><table class="w-table"><tr><th>Stage</th><th class="num">Calls</th>'
            '<th class="num">Tokens</th><th class="num">Cost at most</th></tr>{rows}</table></div>',
            rows=rows,
        )
