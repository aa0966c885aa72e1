"""Signing in, where this server is set up for it (docs/web.md): nothing is drawn for who did not."""

from __future__ import annotations

import streamlit as st

from pages.parts import people, safe


def must_sign_in() -> bool:
    """Whether this session has to sign in before it sees anything."""
    return people.signing_in() and not people.signed_in()


def ask() -> None:
    """Draw the door."""
    with st.container(key="w_empty", horizontal_alignment="center"):
        safe.html(
            '<div class="w-empty w-door"><div class="w-grain" aria-hidden="true"></div><h1>Winnow</h1>'
            "<p>{text}</p></div>",
            text="Lessons from your rollouts, reviewed by you. Decisions are kept under the name that you sign in "
            "with.",
        )
        st.button("Sign in", key="sign_in", type="primary", icon=":material/login:", on_click=st.login)


def out() -> None:
    """Draw the way out."""
    st.button("Sign out", key="sign_out", type="tertiary", icon=":material/logout:", on_click=st.logout)
