"""Publish what was approved: the whole difference once, then one new version."""

import streamlit as st

from core.workspace import Difference
from pages.parts import frame, safe, session, words
from pages.parts.guard import guard

ws = session.workspace()
staged = ws.review.staged()
frame.page("Publish", "All approved proposals become one new version of the library, or none does.")
if not staged:
    waiting = ws.overview().waiting_review
    frame.empty(
        "Nothing is staged",
        "What you approve in the review collects here, and is published together.",
        f"Review {waiting} waiting" if waiting else "Go to the library",
        "pages/review/review.py" if waiting else "pages/review/library.py",
    )
    st.stop()

MESSAGE = "publish_message"


def publish(parent: int) -> None:
    message = str(session.get(MESSAGE, "") or "")
    session.attempt(
        lambda: ws.review.publish(message, session.me(), parent=parent), f"Version {parent + 1} is published."
    )


def undo(proposal_id: str) -> None:
    session.attempt(
        lambda: ws.review.undo(proposal_id, session.me()), f"{proposal_id} waits for review again."
    )


def show(change: Difference) -> None:
    new = change.before is None
    what = "new" if new else "taken out" if change.after is None else "changed"
    tone = "good" if new else "bad" if change.after is None else "accent"
    safe.html(
        '<div class="w-chips"><span class="w-chip quiet">{id}'
        '</span>{chip}<span class="w-note">from {proposal}</span></div>',
        id=change.experience_id,
        chip=frame.chip(what, tone),
        proposal=change.proposal_id or "a merge",
    )
    if change.before is not None and change.after is not None:
        safe.html(
            '<div class="w-exact" dir="auto">{diff}</div>', diff=safe.word_diff(change.before, change.after)
        )
    else:
        safe.exact(change.after or change.before or "", look="" if change.after else "gone")


def show_staged(*, expanded: bool = False) -> None:
    with st.expander(safe.label(f"{words.plural(len(staged), 'proposal')} staged"), expanded=expanded):
        for proposal in staged:
            with st.container(
                horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
            ):
                frame.note(f"{proposal.id}, approved by {proposal.decided_by or 'somebody'}")
                st.button(
                    "Undo", key=f"undo_{proposal.id}", on_click=undo, args=(proposal.id,), type="tertiary"
                )


preview = None
with guard():
    preview = ws.review.preview()
if preview is None:  # what cannot be published can still be taken back
    show_staged(expanded=True)
    st.stop()

left, right = st.columns([3, 2], gap="large")
with right:
    frame.stats(
        [
            (len(preview.differences), "changes"),
            (f"{preview.tokens_before:,} → {preview.tokens_after:,}", "tokens when injected, about"),
        ]
    )
    st.text_input("Message", key=MESSAGE, placeholder="What is this version about?", max_chars=300)
    st.button(
        f"Publish version {preview.parent + 1:d}",
        key="publish",
        type="primary",
        icon=":material/publish:",
        width="stretch",
        on_click=publish,
        args=(preview.parent,),
    )
    frame.note(
        f"Based on version {preview.parent}. If somebody publishes before you, nothing is overwritten: you are told."
    )
    show_staged()
with left:
    frame.section("What changes", "exact texts")
    for change in preview.differences:
        show(change)
