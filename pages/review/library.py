"""The library: every live lesson, exactly as it is injected and shipped."""

from typing import Literal

import streamlit as st

from core.workspace.shelving import LibraryPages
from pages.parts import by_hand, frame, paging, session, shelf, task_view, tidying, words
from pages.parts.guard import guard

NEW, TIDY = "new", "tidy"

ws = session.workspace()
pages = LibraryPages(ws.store)
head = ws.store.versions.head()
frame.page(
    "Library", "Lessons that a person approved. Every one leads back to the rollouts that it came from."
)


def actions() -> None:
    """What can be done with the library as a whole; each ends in the review."""
    place: Literal["left", "center"] = "left" if head else "center"  # else below the empty state
    with st.container(horizontal=True, horizontal_alignment=place, key="library_actions"):
        by_hand.opener("New lesson", NEW, "library_new", ":material/add:", primary=bool(head))
        if head:
            by_hand.opener("Tidy up", TIDY, "library_tidy", ":material/mop:")
    if by_hand.opened(NEW):
        by_hand.new_form(ws, [*pages.facets().domain, *task_view.counted(ws)[0]])
    elif by_hand.opened(TIDY):
        tidying.panel(ws)


if head == 0:
    frame.empty(
        "No lessons yet",
        "Approve proposals in the review and publish them: they become version 1 of the library.",
        "Go to the review",
        "pages/review/review.py",
    )
    actions()
    st.stop()

with guard(stop=True):
    wanted, number = shelf.chosen(ws, pages)
shelf.size(ws, number)
if number != head:
    with st.container(horizontal=True, vertical_alignment="center", key="library_old"):
        frame.note(f"This is version {number}; the newest is {head}.")
        st.button(
            "Show the newest",
            key="library_newest",
            type="tertiary",
            on_click=session.put,
            args=("library_version", ""),
        )
actions()
with guard(stop=True):
    total = pages.page(wanted, limit=0)[1]
listed = st.container()
with st.container(horizontal=True, vertical_alignment="center"):
    frame.note(f"{words.plural(total, 'lesson')} in version {number}")
    first = paging.offset("library_page", total)
with listed:
    if total:
        hits, _ = pages.page(wanted, limit=paging.PAGE, offset=first)
        shelf.rows(hits, pages.records([hit.experience.id for hit in hits]))
    elif shelf.narrowed(wanted):
        frame.empty("Nothing matches", "No lesson of this version fits the search and the filters.")
        st.button("Clear them", key="library_clear_all", on_click=shelf.clear_all)
    else:
        frame.empty("An empty version", f"Version {number} has no live lessons.")
