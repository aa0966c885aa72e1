"""Lessons that a person writes, changes, merges or takes out: each becomes a proposal, as from anywhere else.

What is written stays while other pages are looked at, and when something is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.errors import WinnowError
from core.experience import GENERAL, KINDS, MAX_CHARACTERS, MAX_WORDS, Experience, Operation
from core.record import Record
from core.workspace import Workspace
from core.workspace.by_hand import propose_by_hand
from core.workspace.reviewing import Reviewing
from pages.parts import diffs, frame, proposals, safe, session, words

OPEN = "w_by_hand"
NEAR = 5


class _Op(Record):
    """What a form makes an operation of."""

    operation: Operation


def toggle(what: str) -> None:
    """Open a form, or close it: "new", or what to do with which lesson."""
    session.put(OPEN, "" if session.get(OPEN) == what else what)


def opened(what: str) -> bool:
    return session.get(OPEN) == what


def opener(label: str, what: str, key: str, icon: str, *, primary: bool = False, why_not: str = "") -> None:
    """A button that opens a form, or closes it."""
    why = why_not or session.refusal("reviewer")
    st.button(
        safe.label(label),
        key=key,
        icon=icon,
        type="primary" if primary else "secondary",
        on_click=toggle,
        args=(what,),
        disabled=bool(why),
        help=frame.refused(why),
    )


def new_form(ws: Workspace, domains: Sequence[str]) -> None:
    """A new lesson."""
    with st.container(border=True, key="hand_new"):
        frame.section("A new lesson", f"at most {MAX_WORDS} words: what to do, when, and how")
        text = _text("hand_text_new", "", "When …, do … first, because …")
        if text.strip():
            proposals.word_count(text)
            safe.warn_hidden(text)
            diffs.near(text, (), Reviewing(ws.store))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox("Kind", list(KINDS), key="hand_kind", format_func=words.KIND.__getitem__, width=180)
            st.selectbox(
                "Goes with tasks of",
                list(dict.fromkeys([GENERAL, *domains])),
                key="hand_domain",
                format_func=lambda d: "every domain" if d == GENERAL else d,
                accept_new_options=True,
                persist_state="session",
                width=220,
            )
            _why("new")
        _send(ws, "new")


def edit_form(ws: Workspace, lesson: Experience) -> None:
    """Another text, kind or domain for a lesson."""
    with st.container(border=True, key="hand_edit"):
        frame.section("Propose an edit", f"{lesson.id} keeps its id, its history and what it earned")
        text = _text(f"hand_text_{lesson.id}", lesson.text)
        diffs_of(lesson.text, text)
        if text.strip() and text != lesson.text:
            diffs.near(text, (lesson.id,), Reviewing(ws.store))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Kind",
                list(KINDS),
                list(KINDS).index(lesson.kind),
                key=f"hand_kind_{lesson.id}",
                format_func=words.KIND.__getitem__,
                width=180,
            )
            st.text_input(
                "Goes with tasks of", lesson.domain, key=f"hand_domain_{lesson.id}", max_chars=100, width=200
            )
            _why("edit", lesson)
        _send(ws, "edit", lesson)


def out_form(ws: Workspace, lesson: Experience) -> None:
    """Take a lesson out."""
    with st.container(border=True, key="hand_out"):
        frame.section(
            "Propose to take it out", "its page and its history stay; an undo or a rollback brings it back"
        )
        safe.exact(lesson.text, look="diff gone")
        _why("out", lesson)
        _send(ws, "out", lesson)


def merge_form(ws: Workspace, lesson: Experience) -> None:
    """One lesson in place of two or more."""
    with st.container(border=True, key="hand_merge"):
        frame.section(
            "Merge with …", f"{lesson.id} lives on, with the uses and wins of all; the others point to it"
        )
        near = {
            n.experience.id: n
            for n in Reviewing(ws.store).near(lesson.text, without=(lesson.id,), k=NEAR).found
        }
        others = st.multiselect(
            "Merge it with",
            list(near),
            key=f"hand_others_{lesson.id}",
            accept_new_options=True,
            placeholder="Near ones are listed; type the id of any other",
            persist_state="session",
        )
        with_ids = _ids(others)
        found = Reviewing(ws.store).queue.experiences(with_ids)
        text = _text(f"hand_text_merge_{lesson.id}", lesson.text)
        proposals.word_count(text)
        safe.warn_hidden(text)
        for source in (lesson, *(found[i] for i in with_ids if i in found)):
            safe.html(
                '<div class="w-source"><span class="id">{of}</span><div class="w-exact" dir="auto">{text}</div></div>',
                of=source.id,
                text=diffs.lost_words(source.text, text),
            )
        frame.note("Words that the merged lesson does not have are struck out.")
        _why("merge", lesson)
        if not with_ids:
            frame.note("Choose at least one other lesson.")
        _send(ws, "merge", lesson)


def diffs_of(before: str, after: str) -> None:
    proposals.word_count(after)
    safe.warn_hidden(after)
    if after != before:
        frame.note("What changes, word by word")
        safe.html('<div class="w-exact diff" dir="auto">{diff}</div>', diff=safe.word_diff(before, after))


def _text(key: str, value: str, placeholder: str = "") -> str:
    return st.text_area(
        safe.label(f"Lesson, at most {MAX_CHARACTERS:,} characters"),
        value,
        key=key,
        height=90,
        placeholder=placeholder,
        persist_state="session",
        max_chars=MAX_CHARACTERS,
    )


def _why_key(form: str, lesson: Experience | None) -> str:
    """A reason belongs to one form: what was written for another lesson says nothing of this one."""
    return f"hand_why_{form}" if lesson is None else f"hand_why_{form}_{lesson.id}"


def _why(form: str, lesson: Experience | None = None) -> None:
    st.text_input(
        "Why (optional)", key=_why_key(form, lesson), persist_state="session", max_chars=500, width=340
    )


def _ids(typed: object) -> list[str]:
    return [str(i).strip().upper() for i in typed] if isinstance(typed, list | tuple) else []


def _send(ws: Workspace, form: str, lesson: Experience | None = None) -> None:
    with st.container(horizontal=True):
        st.button(
            "Send it to review",
            key="hand_send",
            type="primary",
            icon=":material/send:",
            on_click=_propose,
            args=(ws, form, lesson),
        )
        st.button("Close", key="hand_close", type="tertiary", on_click=toggle, args=(str(session.get(OPEN)),))
    frame.note("Nothing changes in the library until somebody approves it and it is published.")


def _written(form: str, lesson: Experience | None) -> tuple[dict[str, object], str]:
    """The operation that a form says, as it is when the button is pressed, and the key of its text."""
    if lesson is None:
        domain = str(session.get("hand_domain") or GENERAL).strip()
        return {"op": "add", "kind": session.get("hand_kind"), "domain": domain}, "hand_text_new"
    if form == "out":
        return {"op": "delete", "experience_id": lesson.id}, ""
    if form == "merge":
        ids = [lesson.id, *_ids(session.get(f"hand_others_{lesson.id}"))]
        return {"op": "merge", "experience_ids": ids}, f"hand_text_merge_{lesson.id}"
    kind, domain = (
        session.get(f"hand_kind_{lesson.id}"),
        str(session.get(f"hand_domain_{lesson.id}") or "").strip(),
    )
    return {
        "op": "modify",
        "experience_id": lesson.id,
        "kind": None if kind == lesson.kind else kind,
        "domain": None if domain in ("", lesson.domain) else domain,
    }, f"hand_text_{lesson.id}"


def _fields(form: str, lesson: Experience | None) -> list[str]:
    """The keys of all that was written into a form."""
    if lesson is None:
        return ["hand_text_new", "hand_kind", "hand_domain", _why_key(form, lesson)]
    own = {
        "out": (),
        "merge": (f"hand_text_merge_{lesson.id}", f"hand_others_{lesson.id}"),
        "edit": tuple(f"hand_{field}_{lesson.id}" for field in ("text", "kind", "domain")),
    }
    return [*own[form], _why_key(form, lesson)]


def _propose(ws: Workspace, form: str, lesson: Experience | None) -> None:
    if why := session.refusal("reviewer"):
        session.flash(why, "bad")
        return
    fields, key = _written(form, lesson)
    if key and not (text := str(session.get(key) or "").strip()):
        session.flash("Write the lesson first; nothing was proposed.", "bad")
        return
    if key:
        fields["text"] = text
    try:
        made = propose_by_hand(
            ws.store,
            _Op.read({"operation": fields}, where="the lesson").operation,
            session.me(),
            ws.comparing,
            rationale=str(session.get(_why_key(form, lesson)) or ""),
        )
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    session.forget(OPEN, *_fields(form, lesson))
    said = f" {made.rejected}" if made.rejected else ""
    session.flash(f"{made.proposal.id} waits for review.{said}")
