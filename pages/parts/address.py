"""What a list hands to the page of one of its things, in the address, so that Back finds the list as it was.

`st.switch_page` leaves two entries in the history of the browser: first the *list* with the address of the *thing*,
then the thing. Back comes to the first of them: without more, to a list that lost its filter. So the thing's address
carries the filter too, under other names (those of bound widgets cannot be set), and the list takes its widgets'
defaults from there: a value that is the default changes no address, so Back goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

INSIDE = "in_"


def inside(values: Mapping[str, object]) -> dict[str, str]:
    """Values of a list's widgets for the address of a page about one of its things; empty ones are left out."""
    return {f"{INSIDE}{key}": str(value) for key, value in values.items() if value not in ("", None)}


def handed(key: str) -> str:
    """The value that this address carries for a widget; empty where there is none."""
    return str(st.query_params.get(f"{INSIDE}{key}", ""))[:500]


def place(labels: Sequence[str], key: str, otherwise: int = 0) -> int:
    """Which of a choice's labels the address carries for it."""
    wanted = handed(key)
    return labels.index(wanted) if wanted in labels else otherwise
