"""Measuring something on trial tasks from where it stands: how many tasks, how much it may take, and one button."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from core.errors import NotFoundError, WinnowError
from core.proof import Arm, EvaluationConfig, Purpose
from core.settings import RewardConfig, RunConfig
from core.workspace import Workspace
from core.workspace.evaluation_plans import ARM_SETTINGS
from core.workspace.evaluation_plans import EvaluationPlan as Plan
from core.workspace.trial_gate import LEAST_TASKS, SAMPLES
from pages.parts import evaluation_plan, frame, safe, session, words
from pages.parts.guard import red_line

OPEN = "w_measure"
CAPS = ("max_calls", "max_tokens_total", "max_cost_usd")

Of = Callable[[EvaluationConfig], EvaluationConfig]


def opener(label: str, of: str, key: str) -> bool:
    """The button that opens the panel; gives whether it is open."""
    refusal = session.refusal("reviewer")
    st.button(
        safe.label(label),
        key=f"measure_{key}",
        icon=":material/science:",
        type="tertiary",
        on_click=_toggle,
        args=(of,),
        disabled=bool(refusal),
        help=frame.refused(refusal) or "The same trial tasks with it and without it.",
    )
    return session.get(OPEN) == of


def _toggle(of: str) -> None:
    session.put(OPEN, None if session.get(OPEN) == of else of)


def panel(ws: Workspace, of: Of, run_id: str | None, purpose: Purpose, key: str) -> None:
    """What would be measured, within what budget, and the button that starts it.

    Args:
        ws: the workspace.
        of: the arms of a configuration.
        run_id: the run whose settings are taken; None takes the usual ones.
        purpose: of the evaluation.
        key: begins the keys of the widgets.
    """
    with st.container(border=True, key=f"measure_panel_{key}"):
        narrow = key == "queue"  # it stands in the rail
        one, two, three = (st.container() for _ in range(3)) if narrow else st.columns(3)
        limit = one.number_input(
            "Trial tasks a domain, at most", 1, None, LEAST_TASKS, key=f"measure_tasks_{key}"
        )
        samples = two.number_input("Rollouts a task", 1, 64, SAMPLES, key=f"measure_samples_{key}")
        calls = three.number_input(
            "Calls, at most", 0, None, None, key=f"measure_calls_{key}", placeholder="no cap"
        )
        try:
            base = usual(ws, run_id).model_copy(
                update={"limit": limit, "samples": samples, "max_calls": calls}
            )
            plan = evaluation_plan.outlook(ws, of(base)).plan
        except WinnowError as e:
            red_line(e)
            return
        _said(plan)
        if st.button(
            safe.label(_label(plan)),
            key=f"measure_start_{key}",
            type="primary",
            icon=":material/play_arrow:",
        ):
            if session.attempt(lambda: begin(ws, plan.config, purpose), _done(plan)):
                session.forget(OPEN)
            st.rerun()


def _said(plan: Plan) -> None:
    tasks = len(plan.tasks)
    frame.note(
        f"{words.plural(tasks, 'trial task')}, {words.plural(len(plan.config.arms), 'arm')}, {plan.rollouts:,} "
        f"rollouts with {plan.model}. Nothing is approved or published by it."
    )
    if tasks < LEAST_TASKS:
        frame.note(f"Fewer than {LEAST_TASKS} tasks tell only large effects: the interval will be wide.")
    for note in plan.notes:
        frame.note(note)


def _label(plan: Plan) -> str:
    if plan.finished:
        return f"{plan.resumes} measured exactly this"
    return f"{f'Go on with {plan.resumes}' if plan.resumes else 'Measure'}: at most {words.plural(plan.calls, 'call')}"


def _done(plan: Plan) -> str:
    if plan.finished:
        return f"{plan.resumes} measured exactly this; nothing is paid twice."
    return "It is measured in the background; what comes of it stands here."


def begin(ws: Workspace, config: EvaluationConfig, purpose: Purpose = "compare") -> str:
    """Write an evaluation down, or find the one that is there, and see to it that a worker does it; gives its id."""
    found = ws.evaluating.start(config, session.me(), purpose)
    if found.status != "done":
        ws.jobs.enqueue(found.id, session.me(), RunConfig.read(config.model_dump(include=set(CAPS))))
    return found.id


def usual(ws: Workspace, run_id: str | None = None) -> EvaluationConfig:
    """What an evaluation begins with: the settings of a run, or the endpoints' roles and the usual sampling."""
    none = Arm(name="none", kind="none")
    roles, caps = ws.models.roles(), ws.preferences.caps.model_dump()
    given: dict[str, object] = {"judge_endpoint": roles["judge"], **caps}
    if roles["rollout"]:
        given["endpoint"] = roles["rollout"]
    if run_id:
        with suppress(NotFoundError):
            run = ws.store.runs.brief(run_id)
            if run.kind != "recorded":
                given |= {
                    name: getattr(run.config, name)
                    for name in ARM_SETTINGS
                    if name not in ("split", "domains", "limit")
                }
                if "epistemic" in run.config.reward.by_component:
                    given["reward"] = RewardConfig()
    return EvaluationConfig.model_validate({"arms": (none,), **given})
