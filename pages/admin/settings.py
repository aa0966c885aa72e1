"""Settings: models and their roles, the library, people, and the care of the data."""

import streamlit as st

from pages.parts import frame, session, settings_care, settings_library, settings_models, settings_people

PARTS = {
    "Models": settings_models.draw,
    "Library": settings_library.draw,
    "People": settings_people.draw,
    "Data": settings_care.draw,
}

ws = session.workspace()
frame.page(
    "Settings", "Which models are asked, what reviewers choose from, who may do what, and where the data is."
)
part = st.segmented_control(
    "Part",
    list(PARTS),
    default="Models",
    required=True,
    key="settings_part",
    bind="query-params",
    label_visibility="collapsed",
)
PARTS[part or "Models"](ws)
