"""Plan an evaluation: what it would compare and take is shown before it starts."""

import streamlit as st

from core.errors import AlikeError, WinnowError
from core.proof import EvaluationConfig
from pages.parts import (
    evaluation_arms,
    evaluation_form,
    evaluation_plan,
    frame,
    measured_form,
    safe,
    session,
    task_view,
)
from pages.parts.guard import guard, red_line

ws = session.workspace()
frame.back("Evaluations", "pages/prove/evaluations.py")
frame.page(
    "New evaluation",
    "The same tasks in several arms, sampled side by side, so that a difference is the arms' and nothing else's.",
)
counts, _ = task_view.counted(ws)
held = {domain: by for domain, by in counts.items() if by.get("trial") or by.get("final")}
if not held:
    frame.empty(
        "Held-out tasks first",
        "An evaluation needs tasks of the splits trial or final: what taught a lesson cannot prove it.",
        "Import tasks",
        "pages/learn/import_tasks.py",
    )
    st.stop()

form_side, plan_side = st.columns([3, 2], gap="large")
with form_side:
    settings = evaluation_form.draw(ws, list(held))
with plan_side:
    frame.section("What it would do")
    try:
        config = EvaluationConfig.read(settings, where="eval")
        with st.spinner("Counting …"):
            found = evaluation_plan.outlook(ws, config)
    except AlikeError as e:  # nobody did anything wrong: a library may yet be empty
        safe.html('<div class="w-warn">{note}</div>', note=e)
        st.stop()
    except WinnowError as e:
        red_line(evaluation_arms.problem(e))
        st.stop()
    evaluation_plan.draw(ws, found)
    refusal = session.refusal("reviewer")
    if st.button(
        safe.label(evaluation_plan.start_label(found)),
        key="eval_start",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        disabled=bool(refusal),
        help=frame.refused(refusal),
    ):
        with guard(stop=True):
            begun = measured_form.begin(ws, config)
        session.forget(evaluation_arms.ARMS)
        frame.go("pages/prove/evaluation.py", id=begun)
    frame.note("A worker in the background does it: closing this page, or the app, does not stop it.")
    evaluation_plan.enough(ws, found)
    evaluation_plan.overlap(ws)
