"""The bar at the bottom of a rollout: ways through it, each with its key."""

from __future__ import annotations

import streamlit as st

from pages.parts import frame, safe, session
from pages.parts.safe import joined, markup
from pages.parts.trace import Trace, go, switch

HELP = "w_trace_keys"
KEYS = (
    ("J", "next step or message"),
    ("K", "previous one"),
    ("E", "next step that failed"),
    ("M", "next match of what is looked for"),
    ("N", "next rollout of the group"),
    ("P", "previous rollout"),
    ("A", "accept the outcome"),
    ("X", "reject the outcome"),
    ("U", "take that back"),
    ("W", "write what should have been done"),
    ("Ctrl Enter", "propose it"),
    ("H", "show or hide the keys"),
)


def ways(trace: Trace) -> None:
    """Buttons to the step, error or rollout before and after this one."""
    kind = trace.view.removesuffix("s")
    _way("Previous", "trace_previous", "k", kind, trace.move(-1), "chevron_left")
    _way("Next", "trace_next", "j", kind, trace.move(1), "chevron_right")
    if trace.reading.lines:
        st.button(
            "Next error",
            key="trace_error",
            shortcut="e",
            disabled=not trace.reading.failed,
            icon=":material/error:",
            on_click=_to_error,
            args=(trace.error(),),
        )
    with st.container(horizontal=True, key="trace_moves", width="content"):
        for label, key, shortcut, to in (
            ("Previous rollout", "rollout_previous", "p", trace.beside(-1)),
            ("Next rollout", "rollout_next", "n", trace.beside(1)),
        ):
            st.button(
                safe.label(label),
                key=key,
                shortcut=shortcut,
                type="tertiary",
                disabled=not to,
                on_click=switch,
                args=(to,),
            )
        st.button("Keys", key="trace_help", shortcut="h", type="tertiary", on_click=_toggle_help)


def _way(label: str, key: str, shortcut: str, kind: str, to: int, icon: str) -> None:
    st.button(
        safe.label(label),
        key=key,
        shortcut=shortcut,
        disabled=not to,
        icon=f":material/{icon}:",
        on_click=go,
        args=(kind, to),
    )


def _to_error(number: int) -> None:
    """A failed step may not be among those that are listed, and never is among messages."""
    session.put("trace_view", "steps")
    session.put("trace_which", "failed" if session.get("trace_which") == "failed" else "all")
    session.put("trace_tool", "")
    go("step", number)


def _toggle_help() -> None:
    session.put(HELP, not session.get(HELP))


def keys() -> None:
    """The keys, where they are asked for."""
    if not session.get(HELP):
        return
    rows = joined(
        markup('<span><kbd class="w-kbd">{key}</kbd> {what}</span>', key=key, what=what) for key, what in KEYS
    )
    safe.html('<div class="w-keys">{rows}<span>No key works while you type.</span></div>', rows=rows)


def place(trace: Trace) -> None:
    """Where one is in the group."""
    if trace.rollout.id in trace.siblings and len(trace.siblings) > 1:
        at = trace.siblings.index(trace.rollout.id) + 1
        frame.note(f"rollout {at} of {len(trace.siblings)} in its group")
