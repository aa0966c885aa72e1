"""What a person says of a rollout: accept or reject its outcome, or write what should have been done."""

from __future__ import annotations

import streamlit as st

from core.errors import WinnowError
from core.experience import GENERAL, KINDS, MAX_CHARACTERS, MAX_WORDS, Add, Proposal, text_of
from core.rollout import Rollout
from core.workspace import Workspace
from core.workspace.teaching import why_not
from pages.parts import frame, proposals, safe, session, words
from pages.parts.trace import Trace

OPEN = "w_correcting"
SHOWN = 5


def buttons(trace: Trace) -> None:
    """Accept and reject, or take that back; write a correction. The rollout's id is bound into each."""
    ws, rollout = trace.ws, trace.rollout
    refused = session.refusal("reviewer")
    off = bool(refused) or rollout.error is not None
    why = refused or ("It broke off: there is no outcome." if rollout.error is not None else "")
    no_lesson = refused or why_not(ws.store, rollout.task_id)
    with st.container(horizontal=True, key="trace_verdict", width="content", vertical_alignment="center"):
        for label, key, shortcut, value in (
            ("Accept", "accept", "a", True),
            ("Reject", "reject", "x", False),
        ):
            said = rollout.accepted is value
            st.button(
                safe.label(f"✓ {label}ed" if said else label),
                key=f"rollout_{key}",
                shortcut=shortcut,
                disabled=off or said,
                help=frame.refused(why) or None,
                on_click=_say,
                args=(ws, rollout.id, value),
            )
        if rollout.accepted is not None:
            st.button(
                "Take back",
                key="rollout_clear",
                shortcut="u",
                type="tertiary",
                disabled=bool(refused),
                on_click=_say,
                args=(ws, rollout.id, None),
            )
        st.button(
            "Correct",
            key="rollout_correct",
            shortcut="w",
            icon=":material/edit_note:",
            disabled=bool(no_lesson),
            help=frame.refused(no_lesson) or None,
            on_click=toggle,
            args=(rollout.id,),
        )


def toggle(rollout_id: str) -> None:
    session.put(OPEN, "" if session.get(OPEN) == rollout_id else rollout_id)


def _say(ws: Workspace, rollout_id: str, accepted: bool | None) -> None:
    try:
        found = ws.rescoring.accept([rollout_id], accepted, session.me())
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    done = {True: "Accepted.", False: "Rejected.", None: "Taken back."}[accepted]
    if found.settled:
        done += " The rewards of its group were made anew."
    if found.status_changed:
        done += " The group changed its status."
    session.flash(done)


FIELDS = ("text", "kind", "domain", "note", "about")


def _key(rollout_id: str, field: str) -> str:
    return f"correct_{field}_{rollout_id}"


def form(trace: Trace, domain: str) -> None:
    """The form of a correction; what is written stays when something is wrong with it, or one looks elsewhere."""
    rollout_id = trace.rollout.id
    if session.get(OPEN) != rollout_id:
        return
    with st.container(key="trace_correction"):
        frame.section("What should have been done", f"as a lesson of at most {MAX_WORDS} words")
        text = st.text_area(
            safe.label(f"Lesson, at most {MAX_CHARACTERS:,} characters"),
            key=_key(rollout_id, "text"),
            height=90,
            max_chars=MAX_CHARACTERS,
            persist_state="session",
            placeholder="When …, do … first, because …",
        )
        if text:
            proposals.word_count(text)
            safe.warn_hidden(text)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _about(trace)
            st.selectbox(
                "Kind",
                list(KINDS),
                key=_key(rollout_id, "kind"),
                format_func=words.KIND.__getitem__,
                width=170,
            )
            st.selectbox(
                "Goes with",
                list(dict.fromkeys([domain, GENERAL])),
                key=_key(rollout_id, "domain"),
                format_func=lambda d: "every task" if d == GENERAL else f"tasks of {d}",
                width=210,
            )
            st.text_input(
                "Note for the reviewer (optional)",
                key=_key(rollout_id, "note"),
                persist_state="session",
                max_chars=2_000,
                width=320,
            )
        with st.container(horizontal=True):
            st.button(
                "Propose the correction",
                key="correct_propose",
                type="primary",
                shortcut="Ctrl+Enter",
                icon=":material/send:",
                on_click=_propose,
                args=(trace.ws, rollout_id, _shown_step(trace)),
            )
            st.button(
                "Close",
                key="correct_close",
                type="tertiary",
                shortcut="Escape",
                on_click=toggle,
                args=(rollout_id,),
            )
        frame.note("It waits in the review like every other proposal, and starts with confidence 0.8.")


def _shown_step(trace: Trace) -> int | None:
    """The step that is looked at."""
    return trace.place or None if trace.view == "steps" else None


def _about(trace: Trace) -> None:
    """Whether the step that is looked at is corrected, or the whole."""
    step = _shown_step(trace)
    if step is None:
        return
    st.segmented_control(
        "About",
        ["step", "whole"],
        default="step",
        required=True,
        key=_key(trace.rollout.id, "about"),
        format_func=lambda a: f"step {step}" if a == "step" else "the whole rollout",
    )


def _propose(ws: Workspace, rollout_id: str, step: int | None) -> None:
    """Propose what is written now, which may be more than when the form was drawn.

    Args:
        ws: the workspace.
        rollout_id: what is corrected.
        step: the step that was looked at, which is meant unless the person means the whole.
    """
    text, kind, domain, note, about = (session.get(_key(rollout_id, field)) for field in FIELDS)
    if not (text := str(text or "").strip()):
        session.flash("Write the lesson first; nothing was proposed.", "bad")
        return
    try:
        lesson = Add.read({"text": text, "kind": kind, "domain": domain}, where="the lesson")
        made = ws.correcting.correct(
            rollout_id,
            lesson,
            session.me(),
            step=None if about == "whole" else step,
            note=str(note or ""),
        ).proposal
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    session.forget(*(_key(rollout_id, field) for field in FIELDS))
    toggle(rollout_id)
    session.flash(f"{made.id} waits for review.")


def corrections(ws: Workspace, rollout: Rollout) -> None:
    """What was proposed in place of what this rollout did."""
    found = ws.correcting.of(rollout.id)
    if not found:
        return
    more = len(found) - SHOWN
    frame.section("Corrections", f"the newest {SHOWN} of {len(found)}" if more > 0 else "")
    for one in found[:SHOWN]:
        _correction(ws, rollout, one)


def _correction(ws: Workspace, rollout: Rollout, one: Proposal) -> None:
    step = one.evidence.steps.get(rollout.id)
    author = ws.correcting.author(one.id)
    with st.container(key=f"correction_{one.id}", gap="small"):
        safe.html(
            '<div class="w-item"><span class="id">{id}</span>{chip}'
            '<span class="w-note">{about}, by {author}</span></div>'
            '<div class="w-exact lesson" dir="auto">{text}</div>',
            id=one.id,
            chip=words.proposal_chip(one),
            about=f"about step {step}" if step else "about the whole rollout",
            author=author,
            text=text_of(one.effective) or "",
        )
        with st.container(horizontal=True):
            if st.button(safe.label(f"Open {one.id} in the review"), key=f"to_{one.id}", type="tertiary"):
                st.switch_page("pages/review/review.py", query_params={"id": one.id})
            if one.status in ("proposed", "deferred") and author == session.me():
                st.button(
                    "Take it back",
                    key=f"take_back_{one.id}",
                    type="tertiary",
                    icon=":material/undo:",
                    disabled=bool(session.refusal("reviewer")),
                    on_click=_take_back,
                    args=(ws, one.id, one.revision),
                )


def _take_back(ws: Workspace, proposal_id: str, revision: int) -> None:
    session.attempt(
        lambda: ws.correcting.take_back(proposal_id, session.me(), revision=revision),
        f"{proposal_id} was taken back.",
    )
