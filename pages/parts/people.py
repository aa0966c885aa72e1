"""Who acts: somebody who signed in, or the local profile, which nobody checks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import streamlit as st

from core.workspace import whoami

OWN_NAME = "w_own_name"
"""The name that was chosen for this browser session."""
LONGEST = 80


@dataclass(frozen=True)
class Person:
    name: str
    verified: bool
    """Whether they signed in; else the name is what they, or this machine, say."""


def person() -> Person:
    """Who acts in this session."""
    if signed_in():
        return Person(_plain(str(st.user.get("email") or st.user.get("name") or st.user.get("sub"))), True)
    chosen = st.session_state.get(OWN_NAME)
    return Person(str(chosen) if chosen else _plain(whoami()), False)


def signing_in() -> bool:
    """Whether people sign in here: `[auth]` is in Streamlit's secrets (docs/web.md)."""
    return "is_logged_in" in st.user


def signed_in() -> bool:
    return bool(st.user.get("is_logged_in", False))


def call_me(name: str) -> str:
    """Act under another name for this browser session; says what is wrong with it, if something is."""
    plain = _plain(name)
    if not plain:
        return "Give a name of at least one letter or digit."
    st.session_state[OWN_NAME] = plain
    return ""


def _plain(name: str) -> str:
    """A name on one line, without characters that cannot be seen."""
    line = "".join(c for c in " ".join(name.split()) if c.isprintable())[:LONGEST].strip()
    return line if re.search(r"\w", line) else ""
