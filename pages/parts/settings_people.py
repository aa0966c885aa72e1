"""Who this session is, and who may do what."""

from __future__ import annotations

import streamlit as st

from core.roles import ROLES, Role
from core.workspace import Workspace
from pages.parts import frame, people, safe, session
from pages.parts.safe import joined, markup

MAY = {
    "reader": "looks at everything, changes nothing",
    "reviewer": "also imports, runs, and decides on proposals",
    "publisher": "also publishes, rolls back, moves labels, and changes these settings",
}


def draw(ws: Workspace) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        _me()
    with right:
        _roles(ws)


def _me() -> None:
    me = people.person()
    frame.section("You")
    safe.html(
        '<div class="w-card"><div class="top"><span class="id">{name}</span>{how}{role}</div>'
        '<div class="foot">Your decisions are kept under this name.</div></div>',
        name=me.name,
        how=frame.chip("signed in", "good") if me.verified else frame.chip("not verified", "accent"),
        role=frame.chip(session.role(), "quiet"),
    )
    if me.verified:
        return
    frame.note(
        "Nobody checks the name on this server. WINNOW_USER sets it for the machine; here it changes for this "
        "browser session. docs/web.md says how people sign in instead."
    )
    with st.form("own_name", border=False):
        st.text_input("Name for this session", key="settings_name", placeholder="ann")
        st.form_submit_button("Use this name", key="settings_name_save", on_click=_rename)


def _rename() -> None:
    wrong = people.call_me(str(session.get("settings_name") or ""))
    if wrong:
        session.flash(wrong, "bad")
    else:
        session.flash(f"You act as {people.person().name} in this session.")


def _roles(ws: Workspace) -> None:
    frame.section("Roles", "of who signs in")
    rows = [(who, "publisher", "by WINNOW_PUBLISHERS") for who in ws.people.owners()]
    rows += [(who, role, "") for who, role in ws.people.given().items()]
    safe.html(
        '<table class="w-table">{rows}<tr><td>Who has no other role</td><td>{reader}</td><td></td></tr></table>',
        rows=joined(
            markup(
                '<tr><td>{who}</td><td>{role}</td><td class="w-note">{how}</td></tr>',
                who=who,
                role=frame.chip(role, "accent"),
                how=how,
            )
            for who, role, how in rows
        ),
        reader=frame.chip("reader"),
    )
    frame.facts([(role.capitalize(), MAY[role]) for role in ROLES])
    if not people.signing_in():
        frame.note(
            "People do not sign in here, so everybody who reaches this server has the role of this machine."
        )
    reason = session.refusal("publisher")
    with st.form("give_role", border=False):
        one, two = st.columns([3, 2])
        one.text_input("Name or e-mail that they sign in with", key="settings_who")
        two.selectbox("Role", ROLES, index=1, key="settings_role")
        st.form_submit_button(
            "Give the role",
            key="settings_role_save",
            disabled=bool(reason),
            help=safe.label(reason, 200),
            on_click=_give,
            args=(ws,),
        )


def _give(ws: Workspace) -> None:
    who = str(session.get("settings_who") or "").strip()
    role: Role = next(r for r in ROLES if r == session.get("settings_role"))
    given = None if role == "reader" else role
    if session.attempt(
        lambda: ws.people.give(who, given, session.me()), f"{who} is a {role} here from now on."
    ):
        session.put("settings_who", "")
