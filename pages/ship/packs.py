"""Ship a version: see exactly the bytes, then take them. And what comes in from elsewhere."""

import streamlit as st

from pages.parts import exporting, frame, importing, session, shipped

EXPORT, IMPORT, SO_FAR = "Export", "Import", "So far"

ws = session.workspace()
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
elif not ws.store.versions.head():
    frame.empty(
        "Nothing to ship yet",
        "Publish a version first: approve proposals in the review, then publish them together.",
        "Go to the review",
        "pages/review/review.py",
    )
else:
    exporting.draw(ws)
