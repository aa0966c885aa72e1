"""Lessons from the rollouts of a finished run, where nobody drew them yet: those that were recorded elsewhere, say."""

from __future__ import annotations

import streamlit as st

from core.rollout import UNGRADED, Extraction, Run
from core.workspace import Workspace
from pages.parts import alongside, frame, reasons, safe, session, words

WITHIN_S = 3_600.0


def draw(ws: Workspace, run: Run) -> None:
    """Offer to draw them; what came of it is told on the page that is drawn next."""
    if run.kind != "recorded" or run.status != "done":
        return
    if run.tally.informative:
        _offer(ws, run)
    if ungraded := run.tally.reasons.get(UNGRADED):
        frame.note(
            f"Nobody said yet how good the attempts of {words.plural(ungraded, 'group')} are: with rewards, "
            "lessons can be drawn from them."
        )
        reasons.grade()


def _offer(ws: Workspace, run: Run) -> None:
    command = ("rollouts", "propose", run.id)
    key = " ".join((*command, *map(str, (run.tally.total, run.tally.informative))))
    now = alongside.watched(ws, key, "Counting what better attempts did")
    if now.state == "running":
        return
    if now.state == "done":
        alongside.forget(ws, key)
        made = Extraction.read(now.answer["extraction"]).proposed
        session.flash(f"{words.plural(made, 'proposal')} drawn from {run.id}.")
        st.rerun()
    refusal, untaught = session.refusal("reviewer"), run.extraction == Extraction()
    if st.button(
        safe.label("Draw lessons from it" if untaught else "Draw lessons again"),
        key="run_draw",
        type="primary" if untaught else "secondary",
        icon=":material/lightbulb:",
        disabled=bool(refusal),
        help=frame.refused(refusal),
    ):
        alongside.begin(ws, key, *command, within_s=WITHIN_S)
    if untaught:
        frame.note(
            "What its better attempts did is counted against the worse ones; no model is asked. Only train tasks teach."
        )
