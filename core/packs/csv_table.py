"""CSV for spreadsheets: no cell can be a formula, and what was written can be read back exactly."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from core.errors import PackError
from core.packs.content import PackContent, lessons_of
from core.packs.foreign import Claims, ForeignLibrary, Reading, text_of_file

FORM = "a CSV table of lessons"
COLUMNS = ("id", "text", "kind", "domain", "confidence", "uses", "wins", "learned_on")

_NAMES = {
    "id": ("id", "key", "name"),
    "text": ("text", "experience", "lesson", "content", "insight"),
    "kind": ("kind",),
    "domain": ("domain",),
    "confidence": ("confidence",),
    "uses": ("uses",),
    "wins": ("wins",),
    "learned_on": ("learned_on", "model"),
}
"""What the columns of others are called."""

_STARTS_A_FORMULA = tuple("=+-@＝＋－＠\t\r\n")


def write(content: PackContent) -> bytes:
    """UTF-8, comma, every cell quoted, lines ended by CR LF (RFC 4180)."""
    out = io.StringIO(newline="")
    table = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for experience in lessons_of(content):
        table.writerow([_harmless(str(getattr(experience, column))) for column in COLUMNS])
    return out.getvalue().encode()


def recognises(text: str) -> bool:
    return _delimiter(text) is not None


def read(data: bytes) -> ForeignLibrary:
    """The lessons of a table of ours or of any other that has a column for their texts.

    Only in a table of ours, which has exactly our columns, an apostrophe in front of a cell is taken away again.

    Raises:
        PackError: this is not such a table.
    """
    text = text_of_file(data, FORM)
    delimiter = _delimiter(text)
    if delimiter is None:
        raise PackError(f"The file has no column for the texts of lessons ({', '.join(_NAMES['text'])}).")
    reading = Reading()
    table = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(table)
        ours = tuple(header) == COLUMNS
        places = _places(header)
        for row in table:
            place = f"line {table.line_num}"
            if len(row) == len(header):
                cells = list(map(_as_it_was, row)) if ours else row
                _lesson(reading, place, {name: cells[i] for name, i in places.items()}, exact=ours)
            elif row:
                reason = f"it has {len(row)} cells, and the header {len(header)}"
                reading.set_aside(place, reason, delimiter.join(row))
    except csv.Error as e:
        raise PackError(f"This is not a CSV table of lessons: {e}.") from e
    return reading.done(FORM)


def _lesson(reading: Reading, place: str, cells: dict[str, str], *, exact: bool) -> None:
    if not exact:
        cells = {name: cell.strip() for name, cell in cells.items()}
    claims = Claims(
        kind=cells.get("kind", ""),
        domain=cells.get("domain", ""),
        confidence=_number(cells.get("confidence", "")),
        uses=int(_number(cells.get("uses", "")) or 0),
        wins=int(_number(cells.get("wins", "")) or 0),
        learned_on=cells.get("learned_on", ""),
    )
    reading.lesson(place, cells.get("id", ""), cells["text"], claims)


def _places(header: Sequence[str]) -> dict[str, int]:
    """Column of each field that the table has."""
    found: dict[str, int] = {}
    names = [name.strip().lower() for name in header]
    for field, called in _NAMES.items():
        place = next((names.index(name) for name in called if name in names), None)
        if place is not None:
            found[field] = place
    return found


def _delimiter(text: str) -> str | None:
    first = text.lstrip("\r\n").partition("\n")[0][:4_000]
    for delimiter in ",;\t":
        try:
            header = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:
            continue
        if "text" in _places(header) and (len(header) > 1 or delimiter == ","):
            return delimiter
    return None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value < 2**53 else None


def _harmless(cell: str) -> str:
    """A leading apostrophe tells spreadsheets that a cell is text; one that was there gets another."""
    if cell.startswith(("'", *_STARTS_A_FORMULA)) or cell.lstrip().startswith(_STARTS_A_FORMULA):
        return f"'{cell}"
    return cell


def _as_it_was(cell: str) -> str:
    return cell.removeprefix("'")
