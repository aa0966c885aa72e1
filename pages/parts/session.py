"""The workspace behind a page, and the only place that names a key of the session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import streamlit as st

from core.errors import WinnowError
from core.workspace import Workspace, whoami, workspace_path
from pages.parts import safe
from pages.parts.guard import guard

FLASH = "w_flash"
REVIEW_MODE = "w_review_mode"
DECIDED = "w_decided"
READ_FILE = "w_read_file"

Tone = Literal["good", "bad"]


@st.cache_resource(show_spinner=False)
def _open(path: str, inode: int) -> Workspace:
    """One workspace a folder; a file that was made anew has another inode and is opened anew."""
    return Workspace(workspace_path(path))


def workspace() -> Workspace:
    """The workspace of this app, asked for first on every page, so the style sheet is drawn here.

    The page ends with one red line where it cannot be opened.
    """
    safe.style()
    with guard(stop=True):
        folder = workspace_path()
        database = folder / "winnow.db"
        if not database.exists():
            Workspace(folder)
        return _open(str(folder), database.stat().st_ino)
    raise AssertionError("guard stops the page")


def me() -> str:
    """The name that decisions are kept under; nobody checks it."""
    return whoami()


def asked(name: str = "id") -> str:
    """A value of the page's address, such as `?id=R1-0003`; empty where there is none."""
    return str(st.query_params.get(name, ""))[:200]


def flash(message: str, tone: Tone = "good") -> None:
    """Say something at the top of the page that is drawn next."""
    st.session_state[FLASH] = (message, tone)


def take_flash() -> tuple[str, Tone] | None:
    said: tuple[str, Tone] | None = st.session_state.pop(FLASH, None)
    return said


def attempt(command: Callable[[], object], done: str = "") -> bool:
    """Call one command from a callback; what it says is shown on the next drawing of the page."""
    try:
        command()
    except WinnowError as e:
        flash(str(e), "bad")
        return False
    if done:
        flash(done)
    return True


def get(key: str, default: object = None) -> object:
    return st.session_state.get(key, default)


def put(key: str, value: object) -> None:
    st.session_state[key] = value


def forget(*keys: str) -> None:
    for key in keys:
        with suppress(KeyError):
            del st.session_state[key]
