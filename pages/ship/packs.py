"""Ship a version: see exactly the bytes, then take them. And what comes in from elsewhere."""

import streamlit as st

from core.errors import WinnowError
from pages.parts import exporting, frame, importing, safe, session, shipped, words

EXPORT, IMPORT, SO_FAR = "Export", "Import", "So far"
VERSION = "pack_version"
"""Key of the field that names the version to export."""
OFFERED, LOOKED_AT = 3, 200
"""Newest versions with lessons that are offered, of so many that are looked at."""

ws = session.workspace()
head = ws.store.versions.head()


def asked() -> int:
    """The version that is asked for; the newest where none is, or where it is not there: the form says so."""
    named = str(session.get(VERSION) or session.asked(VERSION)).strip()
    try:
        return ws.store.versions.resolve(named) if named else head
    except WinnowError:
        return head


def empty(number: int) -> None:
    """A version without lessons ships nothing; what else can be shipped."""
    what = "The newest version is empty" if number == head else f"Version {number} is empty"
    frame.empty(
        what, f"Version {number} has no lessons, so there is nothing in it to ship. Others keep theirs."
    )
    with st.container(horizontal=True, horizontal_alignment="center", key="packs_others"):
        for each in [v for v in ws.store.versions.newest(LOOKED_AT) if v.size][:OFFERED]:
            st.button(
                safe.label(f"Version {each.number} · {words.plural(each.size, 'lesson')}"),
                key=f"packs_version_{each.number}",
                on_click=session.put,
                args=(VERSION, str(each.number)),
            )


frame.page("Packs", "A version of the library for your agents. The same version gives the same bytes.")
view = st.segmented_control(
    "View",
    [EXPORT, IMPORT, SO_FAR],
    default=EXPORT,
    required=True,
    key="packs_view",
    bind="query-params",
    label_visibility="collapsed",
)
if view == IMPORT:
    importing.draw(ws)
elif view == SO_FAR:
    shipped.draw(ws)
elif not head:
    frame.empty(
        "Nothing to ship yet",
        "Publish a version first: approve proposals in the review, then publish them together.",
        "Go to the review",
        "pages/review/review.py",
    )
elif not ws.store.versions.get(number := asked()).size:
    empty(number)
else:
    exporting.draw(ws)
