"""What stands under the navigation on every page: which workspace, how far the loop is, who acts.

It is drawn on every run of every page, so it reads a few counts and nothing else. While something is at work it
refreshes itself; once that ended, the page is drawn anew a last time.
"""

from __future__ import annotations

import streamlit as st

from core.roles import LOCAL
from core.workspace import Workspace
from pages.parts import at_work, frame, people, safe, session, signing, words

POLL_S = 2
"""Seconds between two looks at work that is going on."""
BUSY = "w_busy"
MOVED = "w_moved"
NEW_NAME = "new_workspace_name"
SHOWN = 2
"""Jobs that get a line of their own."""


def sidebar() -> None:
    ws = session.workspace()
    ws.ensure_worker()
    with st.container(key="w_side", gap="xxsmall"):
        _picker()
        busy = bool(at_work.jobs(ws))
        session.put(BUSY, busy)
        st.fragment(_standing, run_every=POLL_S if busy else None)(ws)
        _who()


# --- which workspace ---


def _picker() -> None:
    places = session.places()
    names = list(places.all())
    wanted = session.workspace_name()
    if wanted and wanted not in names:
        session.flash(f"There is no workspace {safe.short(wanted, 40)!r} here; this is {names[0]!r}.", "bad")
    with st.container(horizontal=True, gap="xxsmall", vertical_alignment="bottom", key="w_workspace"):
        st.selectbox(
            "Workspace",
            names,
            key=session.WORKSPACE,
            bind="query-params",
            on_change=_changed,
            label_visibility="collapsed",
        )
        with st.popover("", icon=":material/add:", type="tertiary", help="A new workspace", key="w_new"):
            st.text_input("Name of the new workspace", key=NEW_NAME, placeholder="my-agents")
            frame.note("It is made beside this one, and begins empty.")
            st.button("Create workspace", key="new_workspace", type="primary", on_click=_create)
    if session.take(MOVED):
        frame.go("pages/learn/home.py")


def _changed() -> None:
    """Begin at home: what was chosen, opened and decided belongs to the workspace before."""
    session.forget_all(session.WORKSPACE, people.OWN_NAME)
    session.put(MOVED, True)


def _create() -> None:
    made: list[str] = []
    name = str(session.get(NEW_NAME) or "")
    if session.attempt(lambda: made.append(session.places().create(name))):
        _changed()
        session.put(session.WORKSPACE, made[0])
        session.flash(f"{made[0]} is made. It is empty.")


# --- how far the loop is ---


def _standing(ws: Workspace) -> None:
    going_on = at_work.jobs(ws)
    now = ws.margin()
    with st.container(key="w_standing", gap=None):
        for job in going_on[:SHOWN]:
            at_work.line(ws, job)
        if len(going_on) > SHOWN:
            frame.note(f"and {words.plural(len(going_on) - SHOWN, 'more job')}")
        if now.waiting:
            st.page_link(
                "pages/review/review.py",
                label=f"**{now.waiting:,d}** waiting for review",
                icon=":material/rate_review:",
                width="stretch",
            )
        if now.staged:
            st.page_link(
                "pages/review/publish.py",
                label=f"**{now.staged:,d}** staged, not published",
                icon=":material/publish:",
                width="stretch",
            )
        st.page_link(
            "pages/review/versions.py",
            label=safe.label(f"Version {now.version} · {words.plural(now.experiences, 'lesson')}"),
            icon=":material/menu_book:",
            width="stretch",
        )
    if not going_on and session.get(BUSY):
        session.put(BUSY, False)
        session.redraw()  # what the page shows of the work is as it was before its end


# --- who acts ---


def _who() -> None:
    me = people.person()
    role = session.role()
    safe.html(
        '<div class="w-who"><span class="w-face" aria-hidden="true">{first}</span><span class="name">{name}</span>'
        '<span class="w-note">{how}</span></div>',
        first=me.name[:1].upper(),
        name=me.name,
        how=f"{'signed in' if me.verified else 'not verified'}{'' if role == LOCAL else f' · {role}'}",
    )
    if me.verified:
        signing.out()
