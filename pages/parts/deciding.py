"""The decisions of the review page: each is bound to an item and the revision that was looked at.

A key that is pressed twice arrives twice, so a decision that is already made, by the same person, is no error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from core.experience import Proposal
from core.workspace import Workspace
from pages.parts import session

Mode = Literal["", "edit", "reject"]
DRAFT = "review_draft"
REASON = "review_reason"
REASONS = ("too specific", "not true in general", "says the obvious", "said already", "could do harm")


def mode(proposal: Proposal) -> Mode:
    """Which panel is open for this proposal at this revision."""
    opened = session.get(session.REVIEW_MODE, ("", "", 0))
    if not isinstance(opened, tuple) or opened[1:] != (proposal.id, proposal.revision):
        return ""
    which: Mode = opened[0]
    return which


def open_panel(which: Mode, proposal_id: str, revision: int) -> None:
    session.put(session.REVIEW_MODE, (which, proposal_id, revision))


def close_panel() -> None:
    session.forget(session.REVIEW_MODE, DRAFT, REASON)


def approve(ws: Workspace, of: str, revision: int, then: str) -> None:
    _decide(ws, of, "approved", then, lambda: ws.review.approve(of, session.me(), revision=revision))


def approve_edited(ws: Workspace, of: str, revision: int, then: str) -> None:
    text = str(session.get(DRAFT, ""))
    _decide(
        ws, of, "approved", then, lambda: ws.review.approve(of, session.me(), revision=revision, text=text)
    )


def save_edit(ws: Workspace, of: str, revision: int) -> None:
    text = str(session.get(DRAFT, ""))
    if session.attempt(
        lambda: ws.review.edit(of, text, session.me(), revision=revision), f"{of}: your text is kept."
    ):
        close_panel()


def reject(ws: Workspace, of: str, revision: int, then: str) -> None:
    reason = str(session.get(REASON) or "")
    _decide(ws, of, "rejected", then, lambda: ws.review.reject(of, reason, session.me(), revision=revision))


def defer(ws: Workspace, of: str, revision: int, then: str) -> None:
    _decide(ws, of, "deferred", then, lambda: ws.review.defer(of, "", session.me(), revision=revision))


def undo(ws: Workspace, of: str) -> None:
    """Take back the decision on one proposal and look at it again."""
    if session.attempt(lambda: ws.review.undo(of, session.me()), f"{of} waits again."):
        session.put(session.DECIDED, [i for i in decided() if i != of])
        st.query_params["id"] = of
        close_panel()


def decided() -> list[str]:
    """What this session decided on, the last one last."""
    found = session.get(session.DECIDED, [])
    return list(found) if isinstance(found, list) else []


def show(proposal_id: str) -> None:
    st.query_params["id"] = proposal_id
    close_panel()


def _decide(ws: Workspace, of: str, status: str, then: str, command: Callable[[], Proposal]) -> None:
    now = ws.store.proposals.get(of)
    if now.status == status and now.decided_by == session.me():
        return
    if not session.attempt(command, f"{of} {'staged' if status == 'approved' else status}."):
        return
    session.put(session.DECIDED, [*(i for i in decided() if i != of), of])
    close_panel()
    if then:
        st.query_params["id"] = then
    else:
        st.query_params.pop("id", None)
