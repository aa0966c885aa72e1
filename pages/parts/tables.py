"""Tables of foreign text: `st.dataframe` draws cells as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Protocol

import streamlit as st

from pages.parts import safe

Row = Mapping[str, object]
SHOWN = 500
"""Rejected rows that are shown; the download has them all."""


class LineAndReason(Protocol):
    @property
    def line(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def raw(self) -> str: ...


def pick(key: str, rows: Sequence[Row], ids: Sequence[str]) -> str:
    """Show rows of which one can be chosen by a click on any of its cells; returns the chosen row's id.

    Args:
        key: must change with what is shown (filters, page): Streamlit keeps the *position* of a selection.
        rows: what is shown.
        ids: id of each row, shape of `rows`.
    """
    state = st.dataframe(
        list(rows),
        key=key,
        hide_index=True,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        lazy=False,
        width="stretch",
    )
    selection = state["selection"]
    chosen = [*selection["rows"], *(place for place, _ in selection.get("cells") or ())]
    return ids[chosen[0]] if chosen and chosen[0] < len(ids) else ""


def rejected(rows: Sequence[LineAndReason], *, key: str, sources: Sequence[str] = ()) -> None:
    """Rows that did not come in, each with its line and reason.

    Args:
        rows: what is shown.
        key: of the table.
        sources: the file that each came from, shape of `rows`; empty where there is one file.
    """
    shown = rows[:SHOWN]
    cells: list[Row] = [
        {"Line": r.line, "Reason": r.reason, "Row": safe.short(r.raw, 300)}
        | ({"File": sources[i]} if sources else {})
        for i, r in enumerate(shown)
    ]
    st.dataframe(cells, hide_index=True, width="stretch", key=f"{key}_table", lazy=False)


def csv_of(rows: Sequence[LineAndReason]) -> bytes:
    """Line, reason and raw row as CSV; a cell that a spreadsheet would take for a formula gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("line", "reason", "raw"))
    for row in rows:
        writer.writerow((row.line, _plain(row.reason), _plain(row.raw)))
    return out.getvalue().encode("utf-8", "replace")


def _plain(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
