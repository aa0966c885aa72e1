"""What a page knows about this session: the workspace, who acts, and what was said last."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Literal, NoReturn

import streamlit as st

from core.errors import WinnowError
from core.roles import Role, may
from core.workspace import Workspace, workspace_path
from core.workspace.places import Places
from pages.parts import people
from pages.parts.guard import guard

WORKSPACE = "workspace"
"""Key of the workspace picker, and name of its part of the address."""
FLASH = "w_flash"
SAID = "w_said"
REVIEW_MODE = "w_review_mode"
DECIDED = "w_decided"
READ_FILE = "w_read_file"
ROLE = "w_role"

Tone = Literal["good", "bad"]


@st.cache_resource(show_spinner=False)
def _open(path: str, inode: int) -> Workspace:
    """One workspace a folder; a file that was made anew has another inode and is opened anew."""
    folder = workspace_path(path)
    Places(workspace_path()).remember(folder)
    return Workspace(folder)


def places() -> Places:
    """The workspaces that can be chosen from."""
    return Places(workspace_path())


def workspace() -> Workspace:
    """The workspace of this session, asked for first on every page.

    It is the one whose name the picker or the address holds, where there is one of that name; else the configured
    one. The page ends with one red line where it cannot be opened.
    """
    with guard(stop=True):
        folder = places().all().get(workspace_name()) or workspace_path()
        database = folder / "winnow.db"
        if not database.exists():
            Workspace(folder)
        ws = _open(str(folder), database.stat().st_ino)
        role = _role(ws)
        st.session_state[ROLE] = role
        return ws.as_(role)
    raise AssertionError("guard stops the page")


def _role(ws: Workspace) -> Role:
    me = people.person()
    return ws.people.role_of(me.name, signed_in=me.verified)


def role() -> Role:
    """What the person may do in this workspace; known once it was asked for."""
    held: Role = st.session_state.get(ROLE, "reader")
    return held


def workspace_name() -> str:
    """The name that is asked for; nobody checked that there is such a workspace."""
    return str(get(WORKSPACE) or asked(WORKSPACE))


def me() -> str:
    """The name that decisions are kept under."""
    return people.person().name


def refusal(needed: Role) -> str:
    """Why the person may not do what needs a role; empty where they may. The core refuses it as well."""
    held = role()
    return (
        ""
        if may(held, needed)
        else f"You are a {held} here; this takes a {needed}. A publisher can change that."
    )


def asked(name: str = "id") -> str:
    """A value of the page's address, such as `?id=R1-0003`; empty where there is none."""
    return str(st.query_params.get(name, ""))[:200]


def flash(message: str, tone: Tone = "good") -> None:
    """Say something at the top of the page that is drawn next."""
    st.session_state[FLASH] = (message, tone)


def take_flash() -> tuple[str, Tone] | None:
    """What is to be said; it is not said again, unless the page is drawn anew by itself (`redraw`)."""
    said = take(FLASH)
    put(SAID, said)
    return said if isinstance(said, tuple) else None


def redraw() -> NoReturn:
    """Draw the page anew because something happened elsewhere: what it says to the person stays."""
    if (said := take(SAID)) is not None:
        st.session_state.setdefault(FLASH, said)
    st.rerun()


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


def take(key: str) -> object:
    """A value that is meant for one drawing of the page; None where there is none."""
    return st.session_state.pop(key, None)


def forget(*keys: str) -> None:
    for key in keys:
        with suppress(KeyError):
            del st.session_state[key]


def forget_all(*but: str) -> None:
    """Begin anew: what this session remembers of one workspace means something else in another one."""
    forget(*(str(key) for key in st.session_state if key not in but))
