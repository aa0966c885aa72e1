"""Labels on versions: where each points, and moving it on purpose."""

from __future__ import annotations

import streamlit as st

from core.workspace import Workspace
from core.workspace.shelving import Label
from pages.parts import frame, safe, session
from pages.parts.events import when
from pages.parts.safe import markup

NEW = "label_new"


def draw(ws: Workspace) -> None:
    """Every label, each with a way to move it, and a new one."""
    labels = ws.store.labels.all()
    frame.section("Labels", "names that agents and exports go by")
    if not labels:
        frame.note("None yet. A label such as production says which version is in use.")
    for label in labels:
        with st.container(horizontal=True, vertical_alignment="center", key=f"label_{label.name}"):
            safe.html(
                '<div class="w-label"><b>{name}</b> version {version}{lock}<span class="w-note">{who}, {when}</span>'
                "</div>",
                name=label.name,
                version=label.version,
                lock=markup(" {chip}", chip=frame.chip("protected", "quiet")) if label.protected else "",
                who=label.moved_by,
                when=when(label.moved_at),
            )
            with st.popover("Move", type="tertiary", disabled=bool(session.refusal("publisher"))):
                _move(ws, label)
    with st.popover("New label", icon=":material/label:", disabled=bool(session.refusal("publisher"))):
        _new(ws)


def _move(ws: Workspace, label: Label) -> None:
    key = f"label_{label.name}"
    to = st.number_input("To version", 0, ws.store.versions.head(), ws.store.versions.head(), key=f"{key}_to")
    sure = not label.protected or st.checkbox("It is protected, and I mean it", key=f"{key}_sure")
    with st.container(horizontal=True):
        st.button(
            f"Move it to version {int(to):d}",
            key=f"{key}_move",
            type="primary",
            disabled=not sure,
            on_click=_set,
            args=(ws, label, int(to), sure),
        )
        st.button(
            "Remove it", key=f"{key}_remove", disabled=not sure, on_click=_remove, args=(ws, label, sure)
        )


def _set(ws: Workspace, label: Label, to: int, sure: bool) -> None:
    session.attempt(
        lambda: ws.review.set_label(label.name, to, session.me(), force=sure, expected=label.version),
        f"{label.name} points at version {to}.",
    )
    session.forget(f"label_{label.name}_sure")


def _remove(ws: Workspace, label: Label, sure: bool) -> None:
    session.attempt(
        lambda: ws.review.remove_label(label.name, session.me(), force=sure, expected=label.version),
        f"The label {label.name} is gone; version {label.version} stays.",
    )
    session.forget(f"label_{label.name}_sure")


def _new(ws: Workspace) -> None:
    st.text_input("Name", key=NEW, placeholder="production", max_chars=64)
    to = st.number_input("Version", 0, ws.store.versions.head(), ws.store.versions.head(), key=f"{NEW}_to")
    protect = st.checkbox("Protect it: moving it takes an extra tick", key=f"{NEW}_protect")
    st.button("Make it", key=f"{NEW}_make", type="primary", on_click=_make, args=(ws, int(to), protect))


def _make(ws: Workspace, to: int, protect: bool) -> None:
    name = str(session.get(NEW, "") or "").strip()
    if session.attempt(
        lambda: ws.review.set_label(
            name, to, session.me(), protect=True if protect else None, expected="nothing"
        ),
        f"{name} points at version {to}.",
    ):
        session.put(NEW, "")
