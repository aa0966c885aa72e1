"""A lesson that a person reads out of one group: it becomes a proposal with the group as its evidence."""

from __future__ import annotations

import streamlit as st

from core.errors import WinnowError
from core.experience import GENERAL, KINDS, MAX_CHARACTERS, MAX_WORDS, Add
from core.workspace import Workspace
from core.workspace.teaching import lesson_from
from pages.parts import frame, proposals, safe, session, words

OPEN = "w_lesson_open"


def toggle(group_id: str) -> None:
    session.put(OPEN, "" if session.get(OPEN) == group_id else group_id)


def opened(group_id: str) -> bool:
    return session.get(OPEN) == group_id


FIELDS = ("text", "kind", "domain", "why")


def _key(group_id: str, field: str) -> str:
    return f"lesson_{field}_{group_id}"


def form(ws: Workspace, group_id: str, domain: str) -> None:
    """The form; what is written stays when something is wrong with it, or another page is looked at."""
    frame.section("A lesson from this group", f"at most {MAX_WORDS} words: what to do, when, and how")
    text = st.text_area(
        safe.label(f"Lesson, at most {MAX_CHARACTERS:,} characters"),
        key=_key(group_id, "text"),
        height=90,
        max_chars=MAX_CHARACTERS,
        persist_state="session",
        placeholder="When …, do … first, because …",
    )
    if text:
        proposals.word_count(text)
        safe.warn_hidden(text)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Kind", list(KINDS), key=_key(group_id, "kind"), format_func=words.KIND.__getitem__, width=200
        )
        st.selectbox(
            "Goes with",
            list(dict.fromkeys([domain, GENERAL])),
            key=_key(group_id, "domain"),
            format_func=lambda d: "every task" if d == GENERAL else f"tasks of {d}",
            width=240,
        )
        st.text_input(
            "Why (optional)", key=_key(group_id, "why"), persist_state="session", max_chars=500, width=340
        )
    with st.container(horizontal=True):
        st.button(
            "Propose it",
            key="lesson_propose",
            type="primary",
            icon=":material/send:",
            on_click=_propose,
            args=(ws, group_id),
        )
        st.button("Close", key="lesson_close", type="tertiary", on_click=toggle, args=(group_id,))
    frame.note("It goes to the review queue like every other proposal, with this group as its evidence.")


def _propose(ws: Workspace, group_id: str) -> None:
    """Propose what is written now, which may be more than when the form was drawn."""
    text, kind, domain, why = (session.get(_key(group_id, field)) for field in FIELDS)
    if not (text := str(text or "").strip()):
        session.flash("Write the lesson first; nothing was proposed.", "bad")
        return
    try:
        lesson = Add.read({"text": text, "kind": kind, "domain": domain}, where="the lesson")
        made = lesson_from(
            ws.store, group_id, lesson, session.me(), ws.comparing, rationale=str(why or "")
        ).proposal
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    session.forget(*(_key(group_id, field) for field in FIELDS))
    toggle(group_id)
    session.flash(f"{made.id} waits for review.")
