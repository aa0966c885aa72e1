"""A command that runs alongside the app, on the screen: how long it has been at it, how to stop it, what went wrong."""

from __future__ import annotations

import re

import streamlit as st

from core.workspace import Workspace, alongside
from core.workspace.alongside import Standing
from pages.parts import frame, progress, safe, session
from pages.parts.guard import red_line

EVERY_S = 1
_HOW_FAR = re.compile(r"(.{1,300}): ([\d,]{1,20}) of ([\d,]{1,20})")


def watched(ws: Workspace, key: str, doing: str) -> Standing:
    """Draw how a command is getting on, and draw the page anew once it has ended; gives where it is.

    Args:
        ws: the workspace that it works on.
        key: what it is found by.
        doing: what it does, as "Measuring".
    """
    at_first = alongside.standing(ws.folder, key)

    @st.fragment(run_every=EVERY_S if at_first.state == "running" else None)
    def look() -> None:
        now = alongside.standing(ws.folder, key)
        if now.state == "running":
            frame.note(f"{doing} … {now.since_s:.0f} s")
            _how_far(now.said)
        elif at_first.state == "running":
            session.redraw()

    look()
    if at_first.state == "running":
        st.button(
            "Stop",
            key=f"alongside_stop_{doing}",
            icon=":material/stop:",
            on_click=alongside.forget,
            args=(ws.folder, key),
        )
    if at_first.trouble:
        red_line(at_first.trouble)
    return at_first


def _how_far(said: str) -> None:
    """What the command told of how far it is, as a bar where it told of how much."""
    if found := _HOW_FAR.fullmatch(said):
        done, total = (int(n.replace(",", "")) for n in found.group(2, 3))
        safe.html('{bar}<p class="w-note">{said}</p>', bar=progress.bar(done, total), said=said)


def begin(ws: Workspace, key: str, *arguments: str, within_s: float = alongside.WITHIN_S) -> None:
    """Start a command, and draw the page anew."""
    session.attempt(
        lambda: alongside.begin(
            ws.folder, key, *arguments, role=session.role(), actor=session.me(), within_s=within_s
        )
    )
    st.rerun()


def forget(ws: Workspace, key: str) -> None:
    """Keep nothing of a command whose answer was taken."""
    alongside.forget(ws.folder, key)


def in_a_terminal(*arguments: str) -> None:
    """The same as a command line."""
    with st.expander("The same in a terminal", icon=":material/terminal:"):
        safe.exact("winnow " + " ".join(arguments))
