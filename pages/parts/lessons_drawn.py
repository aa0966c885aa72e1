"""Lessons from the rollouts of a finished run: those that were recorded elsewhere, or whose rewards changed since."""

from __future__ import annotations

import streamlit as st

from core.errors import WinnowError
from core.job import Job
from core.rollout import UNGRADED, Extraction, Run
from core.settings import RunConfig, free
from core.workspace import Workspace
from core.workspace.drawing_anew import DrawingPlan
from core.workspace.reviewing import Reviewing
from pages.parts import alongside, frame, jobs, reasons, safe, session, words
from pages.parts.guard import red_line
from pages.parts.once import once

WITHIN_S = 3_600.0
PLANNED = "w_drawing_plan"
WITHOUT = "without a model"


def draw(ws: Workspace, run: Run, job: Job | None) -> None:
    """Offer to draw them; what came of it is told on the page that is drawn next."""
    changed = Reviewing(ws.store).outdated_of(run.id)
    if changed:
        safe.html('<div class="w-warn">{told}</div>', told=_changed(changed))
    if run.status != "done" or not (run.kind == "recorded" or changed):
        return
    if run.tally.informative and not jobs.active(job):
        _offer(ws, run)
    if run.kind == "recorded" and (ungraded := run.tally.reasons.get(UNGRADED)):
        frame.note(
            f"Nobody said yet how good the attempts of {words.plural(ungraded, 'group')} are: with rewards, "
            "lessons can be drawn from them."
        )
        reasons.grade()


def sent(run: Run) -> None:
    """What was really sent for recorded rollouts: to a model that drew lessons from them."""
    if run.spent.calls:
        tokens = run.spent.prompt_tokens + run.spent.completion_tokens
        frame.note(
            f"Sent to draw lessons: {words.plural(run.spent.calls, 'call')}, {tokens:,} tokens, "
            f"{words.cost(run.spent)}."
        )


def _changed(proposal_ids: list[str]) -> str:
    shown = ", ".join(proposal_ids[:8]) + (" …" if len(proposal_ids) > 8 else "")
    return (
        f"The rewards behind {words.plural(len(proposal_ids), 'proposal')} ({shown}) changed after "
        f"{'it was' if len(proposal_ids) == 1 else 'they were'} drawn. What is drawn again by the same means takes the "
        "place of what nobody decided on."
    )


def _offer(ws: Workspace, run: Run) -> None:
    command = ("rollouts", "propose", run.id)
    key = " ".join((*command, *map(str, (run.tally.total, run.tally.informative))))
    now = alongside.watched(ws, key, "Counting what better attempts did")
    if now.state == "running":
        return
    if now.state == "done":
        alongside.forget(ws, key)
        made = Extraction.read(now.answer["drawn"]).proposed
        session.flash(f"{words.plural(made, 'proposal')} drawn from {run.id}.")
        st.rerun()
    endpoint = _who(ws) if run.kind == "recorded" else ""
    if endpoint:
        _with_model(ws, run, endpoint)
    elif _button(run, _label(run)):
        alongside.begin(ws, key, *command, within_s=WITHIN_S)
    if run.extraction == Extraction() and not endpoint:
        frame.note(
            "What its better attempts did is counted against the worse ones; no model is asked. Only train tasks teach."
        )


def _who(ws: Workspace) -> str:
    """Who is to draw them; empty asks no model."""
    names = [endpoint.name for endpoint in ws.models.all()]
    return str(
        st.selectbox(
            "Lessons drawn by",
            ["", *names],
            key="run_draw_by",
            width=340,
            format_func=lambda name: (
                f"counted evidence and {name}" if name else f"counted evidence, {WITHOUT}"
            ),
            help="A model sums up each attempt, contrasts each group, and puts together what came of it.",
        )
        or ""
    )


def _with_model(ws: Workspace, run: Run, endpoint: str) -> None:
    """What it takes, under which caps, and the button that leaves it to a worker."""
    one, two, _ = st.columns([1, 1, 2])
    calls = one.number_input("Calls, at most", 1, None, None, key="run_draw_calls", placeholder="no cap")
    money = two.number_input(
        "US dollars, at most", 0.0, None, None, key="run_draw_money", placeholder="no cap"
    )
    try:
        asked = ws.learning.asking(run.id, endpoint, max_calls=calls, max_cost_usd=money)
        plan = _plan(ws, run, asked)
    except WinnowError as e:
        red_line(str(e))
        return
    most = plan.most
    frame.facts(
        [
            ("Model", plan.model),
            (
                "Calls at most",
                f"{most.calls:,}: {words.plural(plan.rollouts, 'summary')}, {words.plural(plan.groups, 'contrast')}, "
                f"{words.plural(plan.batches, 'consolidation')}",
            ),
            ("Tokens", f"about {most.prompt_tokens + most.completion_tokens:,}"),
            ("Cost", words.cost(most, free=free(endpoint))),
        ]
    )
    if run.spent.calls and (calls or money):
        frame.note(
            f"The caps hold for all that is sent for {run.id}; {run.spent.calls:,} calls were made already."
        )
    if _button(run, f"{_label(run)}: at most {words.plural(most.calls, 'call')}"):
        session.attempt(lambda: _begin(ws, run, asked))
        st.rerun()


def _begin(ws: Workspace, run: Run, asked: RunConfig) -> None:
    if run.extraction.not_contrasted:  # the replies in the cache were of no use
        ws.learning.ask_again(run.id)
    ws.jobs.enqueue(run.id, session.me(), asked, asking=True)


def _plan(ws: Workspace, run: Run, asked: RunConfig) -> DrawingPlan:
    key = (
        str(ws.folder),
        run.id,
        asked.extraction_endpoint,
        ws.store.figures.stamp(run.id),
        ws.store.versions.head(),
    )
    return once(PLANNED, "plan", key, lambda: ws.learning.plan_drawing(run.id, asked))


def _label(run: Run) -> str:
    return "Draw lessons from it" if run.extraction == Extraction() else "Draw lessons again"


def _button(run: Run, label: str) -> bool:
    refusal = session.refusal("reviewer")
    return st.button(
        safe.label(label),
        key="run_draw",
        type="primary" if run.extraction == Extraction() else "secondary",
        icon=":material/lightbulb:",
        disabled=bool(refusal),
        help=frame.refused(refusal),
    )
