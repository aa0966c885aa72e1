"""How much the library may hold, what reviewers choose from, and the caps that a new run begins with."""

from __future__ import annotations

import streamlit as st

from core.workspace import Workspace
from core.workspace.preferences import Caps
from pages.parts import frame, safe, session

REASONS = "settings_reasons"


def draw(ws: Workspace) -> None:
    reason = session.refusal("publisher")
    left, right = st.columns(2, gap="large")
    with left:
        _capacity(ws, reason)
        _caps(ws, reason)
    with right:
        _reasons(ws, reason)


def _capacity(ws: Workspace, reason: str) -> None:
    frame.section("Capacity")
    frame.note(
        f"The library holds {ws.margin().experiences:,} live lessons. Above its capacity, an audit suggests which go."
    )
    with st.form("capacity", border=False):
        number = st.number_input(
            "Live lessons, at most", 1, 1_000_000, ws.auditing.n_max, key="settings_n_max", width=240
        )
        if _submit("Save capacity", "settings_n_max_save", reason):
            session.attempt(
                lambda: ws.auditing.set_n_max(int(number), session.me()), "The capacity is saved."
            )
            st.rerun()


def _caps(ws: Workspace, reason: str) -> None:
    frame.section("Budget of a run")
    frame.note("What a new run may use at most, unless it is told otherwise. It stops there and can go on.")
    now = ws.preferences.caps
    with st.form("caps", border=False):
        one, two = st.columns(2)
        calls = one.number_input("Calls", 0, None, now.max_calls, key="settings_calls", placeholder="no cap")
        tokens = two.number_input(
            "Tokens", 0, None, now.max_tokens_total, key="settings_tokens", placeholder="no cap"
        )
        money = one.number_input(
            "US dollars", 0.0, None, now.max_cost_usd, key="settings_money", placeholder="no cap"
        )
        if _submit("Save budget", "settings_caps_save", reason):
            caps = Caps(max_calls=calls, max_tokens_total=tokens, max_cost_usd=money)
            session.attempt(lambda: ws.preferences.set_caps(caps, session.me()), "The budget is saved.")
            st.rerun()


def _reasons(ws: Workspace, reason: str) -> None:
    frame.section("Reasons to reject")
    frame.note(
        "A line each. A reviewer chooses one; what was rejected keeps the words that were chosen then."
    )
    if session.get(REASONS) is None:
        session.put(REASONS, "\n".join(ws.preferences.reject_reasons))
    with st.form("reasons", border=False):
        said = st.text_area("Reasons", key=REASONS, height=190, label_visibility="collapsed")
        saved = _submit("Save reasons", "settings_reasons_save", reason)
    if saved and session.attempt(
        lambda: ws.preferences.set_reject_reasons((said or "").splitlines(), session.me()),
        "The reasons are saved.",
    ):
        session.forget(REASONS)
    if saved:
        st.rerun()


def _submit(label: str, key: str, reason: str) -> bool:
    """A button that says why it cannot be used."""
    return st.form_submit_button(
        safe.label(label), key=key, disabled=bool(reason), help=safe.label(reason, 200)
    )
