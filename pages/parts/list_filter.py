"""What stands above a list of runs or of evaluations: words to look for, and choices; the address holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from pages.parts import safe, session

STATES: Mapping[str, str] = {
    "active": "at work or queued",
    "review": "waits for review",
}
"""States that are said in other words than their own."""


class Choice(NamedTuple):
    """One thing to choose by."""

    label: str
    key: str
    """After the list's own, as in `run_state`."""
    options: Sequence[str]
    said: Mapping[str, str]
    """Words for options; another one is said as it is."""
    width: int


def draw(of: str, placeholder: str, choices: Sequence[Choice]) -> tuple[str, list[str]]:
    """Draw the widgets, and a button that clears them once anything is chosen.

    Args:
        of: begins every key.
        placeholder: what can be looked for.
        choices: see `Choice`.

    Returns:
        The words, and what was chosen of each; empty takes all.
    """
    text = st.text_input(
        "Search",
        key=f"{of}_text",
        bind="query-params",
        placeholder=placeholder,
        max_chars=200,
        width=240,
    )
    chosen = [_chosen(of, one) for one in choices]
    if text or any(chosen):
        keys = [f"{of}_text", *(f"{of}_{one.key}" for one in choices)]
        st.button("Clear", key=f"{of}_clear", type="tertiary", on_click=_clear, args=(keys,))
    return text, chosen


def _chosen(of: str, one: Choice) -> str:
    return st.selectbox(
        safe.label(one.label),
        ["", *one.options],
        key=f"{of}_{one.key}",
        format_func=lambda name: one.said.get(name, name) or "all",
        bind="query-params",
        width=one.width,
    )


def _clear(keys: Sequence[str]) -> None:
    for key in keys:
        session.put(key, "")
