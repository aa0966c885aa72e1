"""A lesson that a person reads out of one group: it becomes a proposal with the group as its evidence."""

from __future__ import annotations

import streamlit as st

from core.errors import WinnowError
from core.experience import GENERAL, KINDS, MAX_WORDS, Add, Kind
from core.record import Record
from core.workspace import Workspace
from core.workspace.teaching import lesson_from
from pages.parts import frame, proposals, safe, session, words

OPEN = "w_lesson_open"


def toggle(group_id: str) -> None:
    session.put(OPEN, "" if session.get(OPEN) == group_id else group_id)


def opened(group_id: str) -> bool:
    return session.get(OPEN) == group_id


class _Written(Record):
    text: str
    kind: Kind
    domain: str
    why: str


def form(ws: Workspace, group_id: str, domain: str) -> None:
    """The form; what is written stays when something is wrong with it, or another page is looked at."""
    frame.section("A lesson from this group", f"at most {MAX_WORDS} words: what to do, when, and how")
    text = st.text_area(
        "Lesson",
        key=f"lesson_text_{group_id}",
        height=90,
        persist_state="session",
        placeholder="When …, do … first, because …",
    )
    if text:
        proposals.word_count(text)
        safe.warn_hidden(text)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox(
            "Kind", list(KINDS), key=f"lesson_kind_{group_id}", format_func=words.KIND.__getitem__, width=200
        )
        where = st.selectbox(
            "Goes with",
            list(dict.fromkeys([domain, GENERAL])),
            key=f"lesson_domain_{group_id}",
            format_func=lambda d: "every task" if d == GENERAL else f"tasks of {d}",
            width=240,
        )
        why = st.text_input(
            "Why (optional)", key=f"lesson_why_{group_id}", persist_state="session", max_chars=500, width=340
        )
    written = _Written(text=text, kind=kind, domain=where, why=why)
    with st.container(horizontal=True):
        st.button(
            "Propose it",
            key="lesson_propose",
            type="primary",
            icon=":material/send:",
            on_click=_propose,
            args=(ws, group_id, written),
        )
        st.button("Close", key="lesson_close", type="tertiary", on_click=toggle, args=(group_id,))
    frame.note("It goes to the review queue like every other proposal, with this group as its evidence.")


def _propose(ws: Workspace, group_id: str, written: _Written) -> None:
    text = str(session.get(f"lesson_text_{group_id}", written.text)).strip()
    if not text:
        session.flash("Write the lesson first; nothing was proposed.", "bad")
        return
    try:
        lesson = Add.read({"text": text, "kind": written.kind, "domain": written.domain}, where="the lesson")
        made = lesson_from(
            ws.store, group_id, lesson, session.me(), ws.comparing, rationale=written.why
        ).proposal
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    session.put(f"lesson_text_{group_id}", "")
    toggle(group_id)
    session.flash(f"{made.id} waits for review.")
