"""CSV for spreadsheets: no cell can be a formula, and what was written can be read back exactly."""

from __future__ import annotations

import csv
import io

from core.errors import PackError
from core.packs.content import PackContent, lessons_of

COLUMNS = ("id", "text", "kind", "domain", "confidence", "uses", "wins", "learned_on")

_STARTS_A_FORMULA = tuple("=+-@＝＋－＠\t\r\n")


def write(content: PackContent) -> bytes:
    """UTF-8, comma, every cell quoted, lines ended by CR LF (RFC 4180)."""
    out = io.StringIO(newline="")
    table = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for experience in lessons_of(content):
        table.writerow([_harmless(str(getattr(experience, column))) for column in COLUMNS])
    return out.getvalue().encode()


def read(data: bytes) -> list[dict[str, str]]:
    """The cells as they were before they were made harmless, one dictionary a row.

    Raises:
        PackError: this is not such a table.
    """
    try:
        header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        return [dict(zip(header, map(_as_it_was, row), strict=True)) for row in rows]
    except (csv.Error, ValueError) as e:
        raise PackError(f"This is not a CSV table of lessons: {e}.") from e


def _harmless(cell: str) -> str:
    """A leading apostrophe tells spreadsheets that a cell is text; one that was there gets another."""
    if cell.startswith(("'", *_STARTS_A_FORMULA)) or cell.lstrip().startswith(_STARTS_A_FORMULA):
        return f"'{cell}"
    return cell


def _as_it_was(cell: str) -> str:
    return cell.removeprefix("'")
