"""Work that the web process hands to another one: model calls never run here.

A run is written down first, then a process of its own works on it. It outlives the browser tab and the web server;
`Learning.busy` tells whether one works, whoever started it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import streamlit as st

from core.workspace import Workspace
from pages.parts import session

ROOT = Path(__file__).parents[2]
LAST_WORDS = 2_000
"""Characters of a process's output that are shown when it ended badly."""

_children: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
"""Processes that this one started, by workspace and run: asked for their end, so that none stays a zombie."""


def start(workspace: Workspace, run_id: str, *, retry_failed: bool = False) -> None:
    """Start a process that does what is missing of a run; where one works on it already, nothing happens."""
    if state(workspace, run_id) != "idle":
        return
    command = [sys.executable, "-m", "core", "run", "--resume", run_id, "--workspace", str(workspace.folder)]
    log = _log(workspace, run_id)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        _children[_key(workspace, run_id)] = subprocess.Popen(
            [*command, "--retry-failed"] if retry_failed else command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            start_new_session=True,
        )


def state(workspace: Workspace, run_id: str) -> str:
    """What a run's process does: "working" (it holds the run), "starting" (ours has not taken it yet) or "idle"."""
    child = _children.get(_key(workspace, run_id))
    alive = child is not None and child.poll() is None
    if workspace.learning.busy(run_id):
        return "working"
    return "starting" if alive else "idle"


def last_words(workspace: Workspace, run_id: str) -> str:
    """What the run's last process said, where it ended badly; empty else."""
    child = _children.get(_key(workspace, run_id))
    if child is None or child.poll() in (None, 0):
        return ""
    try:
        return _log(workspace, run_id).read_text("utf-8", "replace")[-LAST_WORDS:].strip()
    except OSError:
        return ""


def load_sample(workspace: Workspace) -> None:
    """Load the sample project and draw the page anew; it asks no model."""
    with st.spinner("Loading the sample project and counting its evidence …"):
        done = session.attempt(lambda: workspace.load_sample(session.me()), "The sample project is loaded.")
    if done:
        st.rerun()


def _key(workspace: Workspace, run_id: str) -> tuple[str, str]:
    return str(workspace.folder), run_id


def _log(workspace: Workspace, run_id: str) -> Path:
    return workspace.folder / "logs" / f"{run_id}.log"
