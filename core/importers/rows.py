"""Rows of a recorded file that is a table of whatever kind: Parquet, CSV, JSONL, a JSON list, or one in an object."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from core.errors import InputError
from core.importers.attempt import Aside
from core.importers.getting import as_dict, as_json, as_list
from core.importers.lines import Piece, records_of, set_aside
from core.importers.opened import RECORDS, Opened
from core.importers.parquet import MAGIC
from core.importers.parquet import rows_of as parquet_rows
from core.importers.source import MAX_LINE, has_half_surrogates
from core.importers.tables import CONTAINERS, delimiter_of, header_of

HOLDERS = ("results", "rollouts", "trajectories", "samples", "attempts", "conversations", *CONTAINERS)
"""Members of a JSON object in which the list of rows is looked for, in this order."""

MAX_OPEN = 5
"""Quotation marks that are never closed; after so many the rest of a CSV file is not read: each costs a second look."""


def head_rows(opened: Opened, holder: str = "") -> list[dict[str, Any]]:
    """The first rows that can be read, at most `RECORDS`. Never raises.

    Args:
        opened: the file.
        holder: the member of a JSON object that holds the list; "" looks for one.
    """
    if opened.head.startswith(MAGIC) or is_csv(opened):
        try:
            rows = [r.value for r in islice(rows_of(opened), RECORDS) if isinstance(r, Piece)]
        except InputError:
            rows = []
        return rows
    records = [r for r in opened.records if isinstance(r, dict)]
    if len(records) == 1 and (held := _held(records[0], holder)) is not None:
        return [r for r in held[:RECORDS] if isinstance(r, dict)]
    return records


def rows_of(opened: Opened, holder: str = "") -> Iterator[Piece | Aside]:
    """All rows of the file, in order.

    Args:
        opened: the file.
        holder: the member of a JSON object that holds the list; "" looks for one.

    Raises:
        InputError: the file cannot be read at all.
    """
    if opened.head.startswith(MAGIC):
        for row in parquet_rows(opened):
            yield row if isinstance(row, Aside) else Piece(f"row {row[0]}", row[0], 0, row[1])
    elif is_csv(opened):
        yield from _csv(opened)
    else:
        for piece in records_of(opened):
            held = None if isinstance(piece, Aside) or piece.number > 1 else _held(piece.value, holder)
            if held is None:
                yield piece
                continue
            for number, value in enumerate(held, 1):
                place = f"record {number}"
                if isinstance(value, dict):
                    yield Piece(place, number, 0, value)
                else:
                    yield set_aside(place, "the record is no JSON object", repr(value))


def pieces_of(opened: Opened) -> Iterator[Piece | Aside]:
    """The records of a file, in order, or the rows of a Parquet file as JSON.

    Raises:
        InputError: the file cannot be read at all.
    """
    if not opened.head.startswith(MAGIC):
        yield from records_of(opened)
        return
    for row in parquet_rows(opened):
        if isinstance(row, Aside):
            yield row
        else:
            number, values = row
            yield Piece(f"row {number}", number, len(repr(values)), as_dict(as_json(values)))


def _held(value: dict[str, Any], holder: str) -> list[Any] | None:
    """The list of rows that an object holds; None where the object is a row itself."""
    for key in (holder,) if holder else HOLDERS:
        held = as_list(value.get(key))
        if any(isinstance(each, dict) and not ("role" in each or "from" in each) for each in held):
            return held
    return None


def is_csv(opened: Opened) -> bool:
    """Whether the file looks like text with delimiters and a header."""
    head = opened.head
    if not head or b"\0" in head or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"<", b""):
        return False
    text = head[:100_000].decode("utf-8-sig", "surrogateescape")
    first = next(csv.reader([text.split("\n", 1)[0]], delimiter=delimiter_of(text)), [])
    return len(first) > 1 and all(0 < len(cell.strip()) <= 100 for cell in first[:2])


def _csv(opened: Opened) -> Iterator[Piece | Aside]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    delimiter = delimiter_of(opened.head.decode("utf-8-sig", "surrogateescape"))
    header: list[str] | None = None
    for number, cells in _cells(opened, delimiter):
        place = f"line {number}"
        if isinstance(cells, str):
            if header is None:
                raise InputError(f"{opened.name}: the header cannot be read: {cells}.")
            yield set_aside(place, cells, "")
        elif header is None:
            header = header_of(cells, [])
        elif len(cells) != len(header):
            reason = f"{len(cells)} fields where the header has {len(header)}"
            yield set_aside(place, reason, delimiter.join(cells))
        elif any(has_half_surrogates(cell) for cell in cells):
            yield set_aside(place, "it holds bytes that are not UTF-8", delimiter.join(cells))
        else:
            row = {name: cell or None for name, cell in zip(header, cells, strict=True)}
            yield Piece(place, number, sum(map(len, cells)), row)


def _cells(opened: Opened, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """(line that it begins in, cells) of every record that is not blank, or what is wrong with it.

    After a bad record reading goes on in the line after its first, so that one open quotation mark costs one row.
    """
    with opened.stream() as stream:
        lines = _Lines(io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline=""))
        faults = 0
        while True:
            begin = lines.number + 1
            lines.begin()
            try:
                cells = next(csv.reader(lines, delimiter=delimiter, strict=True), None)
            except csv.Error as e:
                open_quote = "end of data" in str(e) or "field larger" in str(e)
                faults += open_quote
                yield begin, "a quotation mark is never closed" if open_quote else f"not CSV: {e}"
                if faults > MAX_OPEN:
                    yield (
                        begin + 1,
                        "too many quotation marks are never closed: the rest of the file is not read",
                    )
                    return
                lines.back()
                continue
            except OSError as e:
                yield begin, f"the file is damaged: {e}"
                return
            if cells is None:
                return
            if cells and cells != [""]:
                yield begin, cells


class _Lines:
    """Lines of a text that can be taken again, from the second of a record on."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._again: list[str] = []
        self._taken: list[str] = []
        self.number = 0
        """Of the last line taken, from 1."""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._again.pop() if self._again else self._text.readline(MAX_LINE)
        if not line:
            raise StopIteration
        self._taken.append(line)
        self.number += 1
        return line

    def begin(self) -> None:
        """A record begins with the next line."""
        self._taken = []

    def back(self) -> None:
        """Go back to the line after the first of this record."""
        self._again += reversed(self._taken[1:])
        self.number -= max(len(self._taken) - 1, 0)


def columns_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Every column that occurs, in order of first occurrence."""
    return list(dict.fromkeys(column for row in rows for column in as_dict(row)))
