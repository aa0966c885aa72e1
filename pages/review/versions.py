"""Versions: what each one changed, and a way back that makes a new one."""

import streamlit as st

from core.experience import Version
from core.workspace import differences
from pages.parts import frame, safe, session, words
from pages.parts.events import when
from pages.parts.safe import markup

SHOWN = 30

ws = session.workspace()
head = ws.store.versions.head()
frame.page(
    "Versions", "Every published state of the library. Going back makes a new version; nothing is erased."
)
if head == 0:
    frame.empty(
        "Version 0 is empty",
        "The first publishing makes version 1.",
        "Go to the review",
        "pages/review/review.py",
    )
    st.stop()


def roll_back(number: int, parent: int) -> None:
    session.attempt(
        lambda: ws.review.rollback(number, session.me(), parent=parent),
        f"Version {parent + 1} reads as version {number} did.",
    )


def changes(version: Version) -> None:
    before = ws.store.versions.library(version.parent) if version.parent is not None else None
    after = ws.store.versions.library(version.number)
    for change in differences(before, after) if before else ():
        frame.note(change.experience_id)
        if change.before is not None and change.after is not None:
            safe.html(
                '<div class="w-exact" dir="auto">{diff}</div>',
                diff=safe.word_diff(change.before, change.after),
            )
        else:
            mark = markup(
                "<ins>{text}</ins>" if change.after else "<del>{text}</del>",
                text=change.after or change.before,
            )
            safe.html('<div class="w-exact" dir="auto">{mark}</div>', mark=mark)


asked = session.asked("before")
for version in ws.store.versions.newest(SHOWN, before=int(asked) if asked.isdecimal() else None):
    newest = version.number == head
    safe.html(
        '<div class="w-card {current}"><div class="top"><span class="id">Version {n}'
        '</span>{chip}<span class="end">{by}</span>'
        '</div><div class="text">{message}</div><div class="foot">{foot}</div></div>',
        current="current" if newest else "",
        n=version.number,
        chip=frame.chip("newest", "accent") if newest else markup(""),
        by=", ".join(filter(None, (version.author, when(version.created_at)))),
        message=safe.short(version.message, 300),
        foot=f"{words.plural(version.size, 'lesson')}"
        + (f" · from {', '.join(version.proposal_ids[:12])}" if version.proposal_ids else ""),
    )
    if version.number == 0:
        continue
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Read it", key=f"read_{version.number}", type="tertiary", icon=":material/menu_book:"):
            st.switch_page("pages/review/library.py", query_params={"version": str(version.number)})
        opened = st.toggle("What it changed", key=f"changed_{version.number}")
        if not newest:
            with st.popover("Roll back to it", type="tertiary", icon=":material/history:"):
                frame.note(f"Makes version {head + 1}, which reads as version {version.number} did.")
                st.button(
                    f"Roll back to version {version.number:d}",
                    key=f"rollback_{version.number}",
                    type="primary",
                    on_click=roll_back,
                    args=(version.number, head),
                )
    if opened:
        changes(version)
