"""What a person needs to mend a task file: its columns, and the rows that did not come in as they came."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.importers.columns import SYNONYMS, find_columns
from core.importers.source import MAX_RAW, Rejected, bounded, decode, read_bytes, storable
from core.importers.tables import Row, Table, read_table
from core.record import Record

SEEN = 200
"""First rows of a file that examples of a column are taken from."""
EXAMPLE = 80
"""Characters of an example."""


class Column(Record):
    """One column of a task file."""

    name: str
    filled: int
    """Rows that hold something in it."""
    example: str
    """The first value in it."""


class Columns(Record):
    """What the columns of a file are, and what they are read as where nobody says otherwise."""

    format: str
    ending: str
    """Of a file of this format."""
    rows: int
    columns: tuple[Column, ...]
    guess: dict[str, str]
    """Field of a task -> column. Empty where no column looks like the question."""
    fields: tuple[str, ...] = tuple(SYNONYMS)


def columns_of(data: bytes | Path, name: str = "") -> Columns:
    """The columns of a file, in the order in which they occur.

    Raises:
        InputError: the file is no table.
    """
    raw, name = read_bytes(data, name)
    table = read_table(raw, name)
    filled = Counter(c for row in table.rows for c, value in row.values.items() if value not in (None, ""))
    names = table.columns
    try:
        guess = find_columns(table.rows, names, {}, name)
    except InputError:
        guess = {}
    return Columns(
        format=table.format,
        ending=_ending(table.format, name),
        rows=len(table.rows) + len(table.rejected),
        columns=tuple(Column(name=c, filled=filled[c], example=_example(table.rows, c)) for c in names),
        guess=guess,
    )


def _example(rows: Sequence[Row], column: str) -> str:
    values = (row.values.get(column) for row in rows[:SEEN])
    first = next((value for value in values if value not in (None, "")), "")
    text = first if isinstance(first, str) else json.dumps(first, ensure_ascii=False, default=str)
    return storable(bounded(" ".join(text[: 4 * EXAMPLE].split()), EXAMPLE))


def rows_again(data: bytes, name: str, rejected: Sequence[Rejected]) -> tuple[bytes, str]:
    """Rows of a file as they stand in it, in its format, and the ending of a file of that format.

    Args:
        data: the file that they were rejected from.
        name: what it is called.
        rejected: the rows that are wanted, as `read_tasks` gives them.
    """
    raw, name = read_bytes(data, name)
    table = read_table(raw, name)
    ending = _ending(table.format, name)
    if table.format == "parquet":
        return _parquet(raw, [r.line for r in rejected]), ending
    if table.format == "csv":
        text = _csv(decode(raw, name)[0], table, {r.line for r in rejected})
    elif table.format == "json":
        text = "[\n" + ",\n".join(row.raw for row in _chosen(table, rejected)) + "\n]\n"
    else:
        text = "".join(f"{row.raw}\n" for row in _chosen(table, rejected))
    return text.encode("utf-8", "surrogateescape"), ending


def _ending(form: str, name: str) -> str:
    return "tsv" if form == "csv" and name.lower().endswith(".tsv") else form


def _chosen(table: Table, rejected: Sequence[Rejected]) -> list[Row]:
    """The rows that are meant. A line may hold several of them, so what is kept of them has to be the same, too."""
    wanted = Counter((r.line, r.raw) for r in rejected)
    found = []
    for row in sorted([*table.rows, *table.unread], key=lambda row: row.line):
        key = (row.line, storable(bounded(row.raw, MAX_RAW)))
        if wanted[key]:
            wanted[key] -= 1
            found.append(row)
    return found


def _csv(text: str, table: Table, wanted: set[int]) -> str:
    """The header and the records that begin in these lines, with their quotation marks and line breaks."""
    lines = list(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    starts = sorted({row.line for row in (*table.rows, *table.unread)})
    ends = [*(start - 1 for start in starts[1:]), len(lines)]
    kept = ["".join(lines[: starts[0] - 1])]
    kept += ["".join(lines[s - 1 : e]) for s, e in zip(starts, ends, strict=True) if s in wanted]
    return "".join(part.rstrip("\r\n") + "\n" for part in kept)


def _parquet(data: bytes, numbers: Sequence[int]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    table: Any = pq.read_table(pa.BufferReader(data))
    pq.write_table(table.take([number - 1 for number in numbers]), out)
    return out.getvalue()
