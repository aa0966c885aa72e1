"""Where the data is, a copy of it, and whether it is sound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from core.errors import WinnowError
from core.workspace import Workspace
from core.workspace.aside import run_aside
from pages.parts import frame, safe, session
from pages.parts.guard import red_line
from pages.parts.safe import joined, markup

WITHIN_S = 120.0
"""Seconds for a backup or a check-up; in a terminal it may take longer."""
DOWNLOADED = 200 << 20
"""Bytes of a backup that the browser is offered; larger ones are taken from the folder."""
SHOWN = 6
FOUND = "w_doctor"


def draw(ws: Workspace) -> None:
    frame.section("Folder", "everything of this workspace is in it")
    safe.exact(str(ws.folder))
    left, right = st.columns(2, gap="large")
    with left:
        _backups(ws)
    with right:
        _doctor(ws)


def _backups(ws: Workspace) -> None:
    frame.section("Backups")
    frame.note(
        "One file, consistent while others work, checked before it gets its name. It holds all that the workspace "
        "holds: guard it alike. Restoring is a command: winnow restore FILE."
    )
    reason = session.refusal("publisher")
    if st.button(
        "Make a backup",
        key="backup",
        icon=":material/archive:",
        disabled=bool(reason),
        help=safe.label(reason, 200),
    ):
        with st.spinner("Copying and checking …"):
            session.attempt(
                lambda: run_aside(ws.folder, "backup", within_s=WITHIN_S, role=session.role()),
                "The backup is made.",
            )
        st.rerun()
    if reason:
        return
    for file in _made(ws)[:SHOWN]:
        _offer(file)


def _made(ws: Workspace) -> list[Path]:
    """Backups in the workspace, the newest first."""
    return sorted((ws.folder / "backups").glob("winnow-*.zip"), key=lambda p: p.name, reverse=True)


def _offer(file: Path) -> None:
    size = file.stat().st_size
    with st.container(horizontal=True, vertical_alignment="center"):
        safe.html('<span class="w-path">{name}</span>', name=f"{file.name} · {size / 1e6:,.1f} MB")
        if size <= DOWNLOADED:
            st.download_button(
                "Download",
                file.read_bytes,
                file.name,
                "application/zip",
                key=f"backup_{file.stem}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
            )


def _doctor(ws: Workspace) -> None:
    frame.section("Check-up")
    frame.note(
        "Looks at the file, the rows, what hangs together, the log against the tables, and around it. Nothing is "
        "changed."
    )
    if st.button("Check this workspace", key="doctor", icon=":material/stethoscope:"):
        with st.spinner("Looking at everything …"):
            session.put(FOUND, _examine(ws))
    found = session.get(FOUND)
    if isinstance(found, str):
        red_line(found)
    elif isinstance(found, list):
        _report(found)


def _examine(ws: Workspace) -> list[Mapping[str, str]] | str:
    try:
        said = run_aside(ws.folder, "doctor", within_s=WITHIN_S, role=session.role())
    except WinnowError as e:
        return str(e)
    return [{str(k): str(v) for k, v in each.items()} for each in said.get("findings", [])]


def _report(found: list[Mapping[str, str]]) -> None:
    if not found:
        safe.html('<div class="w-done" role="status">{text}</div>', text="Nothing is wrong with it.")
        return
    rows = joined(
        markup(
            "<tr><td>{what}</td><td>{where}</td><td>{how}</td></tr>",
            what=each.get("what", ""),
            where=each.get("where", ""),
            how=each.get("how", ""),
        )
        for each in found[:50]
    )
    safe.html(
        '<div class="w-scroll"><table class="w-table"><tr><th>What</th><th>Where</th><th>What helps</th></tr>{rows}'
        "</table></div>",
        rows=rows,
    )
    frame.note("winnow doctor --fix mends what changes nothing that is told, after a backup.")
