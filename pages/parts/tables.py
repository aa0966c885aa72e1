"""Tables of foreign text: `st.dataframe` draws cells as they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Protocol

import streamlit as st

from core.rollout import SPLITS
from pages.parts import frame, safe
from pages.parts.log_file import plain
from pages.parts.safe import joined, markup

Row = Mapping[str, object]
SHOWN = 500
"""Rejected rows that are shown; the download has them all."""
DOMAINS = 200
"""Domains with a line of their own."""


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


def splits(counts: Mapping[str, Mapping[str, int]]) -> None:
    """Tasks by domain and split."""
    rows = joined(
        markup(
            '<tr><td>{domain}</td><td class="num">{train}</td><td class="num">{trial}</td>'
            '<td class="num">{final}</td></tr>',
            domain=domain,
            **{split: f"{by.get(split, 0):,}" for split in SPLITS},
        )
        for domain, by in list(counts.items())[:DOMAINS]
    )
    safe.html(
        '<table class="w-table"><tr><th>Domain</th><th class="num">Train</th><th class="num">Trial</th>'
        '<th class="num">Final</th></tr>{rows}</table>',
        rows=rows,
    )
    if len(counts) > DOMAINS:
        frame.note(f"The first {DOMAINS} of {len(counts):,} domains.")


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
        writer.writerow((row.line, plain(row.reason), plain(row.raw)))
    return out.getvalue().encode("utf-8", "replace")
