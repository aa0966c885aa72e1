"""The buttons of the review, each with its key, and the panels for editing and rejecting.

Streamlit fires no single key while somebody types; the other keys are off while a panel is open.
"""

from __future__ import annotations

import streamlit as st

from core.experience import Delete, Proposal, text_of
from core.workspace import Workspace
from pages.parts import deciding, proposals

Bound = tuple[Workspace, str, int]


def draw(ws: Workspace, item: Proposal, following: str, last: str) -> None:
    """Draw the buttons, and the panel that is open.

    Args:
        ws: the workspace.
        item: the proposal as it is shown; its revision is bound into every button.
        following: what is shown after a decision; empty where nothing follows.
        last: what was decided on last, for undo; empty where nothing was.
    """
    open_mode = deciding.mode(item)
    waiting = item.status in ("proposed", "deferred", "superseded")
    bound = (ws, item.id, item.revision)
    with st.container(horizontal=True, key="review_actions"):
        st.button(
            "Approve",
            key="approve",
            shortcut="a",
            type="primary",
            disabled=not waiting or bool(open_mode),
            on_click=deciding.approve,
            args=(*bound, following),
        )
        st.button(
            "Edit",
            key="edit",
            shortcut="e",
            disabled=not waiting or bool(open_mode) or isinstance(item.operation, Delete),
            on_click=deciding.open_panel,
            args=("edit", item.id, item.revision),
        )
        st.button(
            "Reject",
            key="reject",
            shortcut="x",
            disabled=not waiting or bool(open_mode),
            on_click=deciding.open_panel,
            args=("reject", item.id, item.revision),
        )
        st.button(
            "Defer",
            key="defer",
            shortcut="d",
            disabled=item.status != "proposed" or bool(open_mode),
            on_click=deciding.defer,
            args=(*bound, following),
        )
        undoable = item.id if item.status in ("approved", "rejected", "deferred") else last
        st.button(
            "Undo",
            key="undo",
            shortcut="u",
            disabled=not undoable or bool(open_mode),
            on_click=deciding.undo,
            args=(ws, undoable),
        )
    if open_mode == "edit":
        _edit(item, bound, following)
    if open_mode == "reject":
        _reject(bound, following)


def _edit(item: Proposal, bound: Bound, following: str) -> None:
    text = st.text_area("Your text", text_of(item.effective) or "", key=deciding.DRAFT, height=140)
    proposals.word_count(text or "")
    with st.container(horizontal=True):
        st.button(
            "Save and approve",
            key="edit_approve",
            type="primary",
            shortcut="Ctrl+Enter",
            on_click=deciding.approve_edited,
            args=(*bound, following),
        )
        st.button("Save only", key="edit_save", on_click=deciding.save_edit, args=bound)
        st.button("Cancel", key="panel_cancel", shortcut="Escape", on_click=deciding.close_panel)


def _reject(bound: Bound, following: str) -> None:
    st.selectbox(
        "Why?",
        deciding.REASONS,
        key=deciding.REASON,
        index=None,
        accept_new_options=True,
        placeholder="Choose a reason, or write one",
    )
    with st.container(horizontal=True):
        st.button(
            "Reject it",
            key="reject_now",
            type="primary",
            shortcut="Ctrl+Enter",
            on_click=deciding.reject,
            args=(*bound, following),
        )
        st.button("Cancel", key="panel_cancel", shortcut="Escape", on_click=deciding.close_panel)
