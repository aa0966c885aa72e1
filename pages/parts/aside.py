"""What could not become a proposal: the reason, the raw reply, and a form that says what was meant."""

from __future__ import annotations

import streamlit as st

from core.experience import KINDS, Add, Delete, Merge, Modify, Operation
from core.workspace import Workspace
from core.workspace.reviewing import QuarantinedItem
from pages.parts import deciding, frame, paging, proposals, safe, session

PAGE = 10
OPERATIONS = ("add", "modify", "delete", "merge")
OPENED = "w_adopting"


def quarantine(ws: Workspace) -> None:
    """One page of the quarantine."""
    _, total = ws.store.proposals.quarantine_page(limit=0)
    if not total:
        return
    frame.section(
        "Quarantine", "suggestions that could not become a proposal, with the reply that they came from"
    )
    first = paging.offset("review_quarantine", total, PAGE)
    held, _ = ws.store.proposals.quarantine_page(limit=PAGE, offset=first)
    for each in held:
        _item(ws, each)


def _item(ws: Workspace, held: QuarantinedItem) -> None:
    run = f" · {held.item.run_id}" if held.item.run_id else ""
    became = f" · became {held.proposal_id}" if held.proposal_id else ""
    with st.expander(
        safe.label(f"{held.id}{run}{became}: {held.item.reason}", 160),
        expanded=session.get(OPENED) == held.id,
    ):
        safe.exact(held.item.raw, key=f"raw_{held.id}", name=f"{held.id}.txt")
        if held.proposal_id:
            if st.button(safe.label(f"Open {held.proposal_id}"), key=f"became_{held.id}"):
                deciding.show(held.proposal_id)
                st.rerun()
        elif session.get(OPENED) == held.id:
            _form(ws, held.id)
        else:
            st.button(
                "Make a proposal of it", key=f"adopt_{held.id}", on_click=session.put, args=(OPENED, held.id)
            )


def _form(ws: Workspace, item_id: str) -> None:
    op = st.segmented_control("What was meant?", OPERATIONS, default="add", required=True, key="adopt_op")
    if op != "add":
        st.text_input(
            "Lessons that it changes", key="adopt_targets", placeholder="E-0007, or E-0007 E-0009 for a merge"
        )
    if op != "delete":
        text = st.text_area("Text", key="adopt_text", height=110)
        proposals.word_count(text or "")
    if op == "add":
        with st.container(horizontal=True):
            st.selectbox("Kind", KINDS, key="adopt_kind", format_func=lambda k: k.replace("_", " "))
            st.text_input("Domain", key="adopt_domain", value="general", max_chars=200)
    with st.container(horizontal=True):
        st.button("Propose it", key="adopt_now", type="primary", on_click=adopt, args=(ws, item_id))
        st.button("Cancel", key="adopt_cancel", on_click=session.forget, args=(OPENED,))


def adopt(ws: Workspace, item_id: str) -> None:
    """Make the proposal that the form says, and look at it."""
    made: list[str] = []

    def command() -> None:
        made.append(ws.review.adopt(item_id, _operation(), session.me()).id)

    if session.attempt(command, f"{item_id} is a proposal now; it waits for a decision."):
        session.forget(OPENED)
        session.put("review_queue", "Waiting")
        deciding.show(made[0])


def _operation() -> Operation:
    op = str(session.get("adopt_op", "add"))
    text = str(session.get("adopt_text", "") or "")
    targets = str(session.get("adopt_targets", "") or "").replace(",", " ").split()
    told: dict[str, object] = {"op": op}
    if op == "merge":
        told["experience_ids"] = targets
    elif op != "add":
        told["experience_id"] = targets[0] if targets else ""
    if op != "delete":
        told["text"] = text
    if op == "add":
        told |= {
            "kind": session.get("adopt_kind", "strategy"),
            "domain": session.get("adopt_domain") or "general",
        }
    makers: dict[str, type[Add | Modify | Delete | Merge]] = {
        "add": Add,
        "modify": Modify,
        "delete": Delete,
        "merge": Merge,
    }
    return makers[op].read(told, where=op)
