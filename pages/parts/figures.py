"""Figures of many rollouts, kept until they change: those of a finished run are counted once."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.figures import (
    BatchFigure,
    Distribution,
    Grid,
    GroupFilter,
    PartFigure,
    RunName,
    ToolError,
    ToolFigure,
)
from core.rollout import Tally
from core.workspace import Workspace
from core.workspace.versus import Versus, versus

KEPT = 200
"""Figures that are kept at once, of all workspaces together."""


class Figures:
    """The figures of one workspace, asked for with a stamp that changes whenever they may."""

    def __init__(self, ws: Workspace, which: GroupFilter) -> None:
        self._ws = ws
        self.which = which
        self._stamp = f"{ws.folder}:{ws.store.figures.stamp(which.run_id)}"

    def tally(self) -> Tally:
        return _tally(self._ws, self._stamp, self.which.canonical())

    def distribution(self) -> Distribution:
        return _distribution(self._ws, self._stamp, self.which.canonical())

    def grid(self) -> Grid:
        return _grid(self._ws, self._stamp, self.which.canonical())

    def parts(self) -> Sequence[PartFigure]:
        return _parts(self._ws, self._stamp, self.which.canonical())

    def batches(self) -> Sequence[BatchFigure]:
        return _batches(self._ws, self._stamp, self.which.canonical())

    def tools(self) -> tuple[Sequence[ToolFigure], Sequence[ToolError]]:
        return _tools(self._ws, self._stamp, self.which.canonical())


def compared(ws: Workspace, a: str, b: str) -> Versus:
    """Two runs beside each other."""
    stamp = ":".join([str(ws.folder), ws.store.figures.stamp(a), ws.store.figures.stamp(b)])
    return _compared(ws, stamp, a, b)


def run_label(run: RunName) -> str:
    """A run in a list to choose from."""
    return f"{run.id} · {run.model or run.kind} · {run.groups:,} groups"


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _tally(_ws: Workspace, stamp: str, which: str) -> Tally:
    return _ws.store.figures.tally(GroupFilter.model_validate_json(which))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _distribution(_ws: Workspace, stamp: str, which: str) -> Distribution:
    return _ws.store.figures.distribution(GroupFilter.model_validate_json(which))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _grid(_ws: Workspace, stamp: str, which: str) -> Grid:
    return _ws.store.figures.grid(GroupFilter.model_validate_json(which))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _parts(_ws: Workspace, stamp: str, which: str) -> list[PartFigure]:
    return _ws.store.figures.parts(GroupFilter.model_validate_json(which))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _batches(_ws: Workspace, stamp: str, which: str) -> list[BatchFigure]:
    return _ws.store.figures.batches(GroupFilter.model_validate_json(which))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _tools(_ws: Workspace, stamp: str, which: str) -> tuple[list[ToolFigure], list[ToolError]]:
    wanted = GroupFilter.model_validate_json(which)
    return _ws.store.figures.tools(wanted), _ws.store.figures.tool_errors(wanted)


@st.cache_data(max_entries=20, show_spinner=False)
def _compared(_ws: Workspace, stamp: str, a: str, b: str) -> Versus:
    return versus(_ws.store, a, b)
