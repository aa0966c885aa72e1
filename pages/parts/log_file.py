"""The log as a file for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json

from core.workspace import Workspace

MOST = 100_000
"""Lines of a file."""
PORTION = 5_000
COLUMNS = ("id", "at", "who", "what", "about", "why", "data")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""How a cell may begin that a spreadsheet would take for a formula."""


def csv_of(ws: Workspace, *, kind: str, but: str = "", actor: str, subject: str) -> bytes:
    """All lines that fit the filters, the newest first; no cell of it is a formula."""
    from pages.parts.events import why

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for offset in range(0, MOST, PORTION):
        found, _ = ws.store.events.page(
            kind=kind, but=but, actor=actor, subject=subject, limit=PORTION, offset=offset
        )
        for e in found:
            told = json.dumps(e.data, ensure_ascii=False)
            writer.writerow((e.id, *map(plain, (e.at, e.actor, e.kind, e.subject, why(e), told))))
        if len(found) < PORTION:
            break
    return out.getvalue().encode("utf-8", "replace")


def plain(cell: str) -> str:
    """A cell that a spreadsheet shows as it is: what would be a formula begins with an apostrophe."""
    return f"'{cell}" if cell.lstrip(" ").startswith(FORMULA) else cell
