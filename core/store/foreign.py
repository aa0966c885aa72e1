"""Tables of SQLite files that other programs wrote: read, and never written, not even a journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from core.errors import InputError

MAGIC = b"SQLite format 3\x00"


def columns_of(path: Path, table: str) -> tuple[str, ...]:
    """The columns of a table; none where there is no such table. Views are no tables.

    Raises:
        InputError: the file is damaged.
    """
    try:
        with closing(_opened(path)) as db:
            _check_size(db, path)
            known = db.execute("select 1 from sqlite_master where type = 'table' and name = ?", [table])
            if known.fetchone() is None:
                return ()
            return tuple(name for _, name, *_ in db.execute(f"pragma table_info({_quoted(table)})"))
    except sqlite3.Error as e:
        raise _damaged(path, e) from e


def rows_of(path: Path, table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table in the order in which they were put in; text that is not UTF-8 has half surrogates.

    Raises:
        InputError: the file is damaged; rows before the damage were yielded.
    """
    try:
        with closing(_opened(path)) as db:
            db.row_factory = sqlite3.Row
            db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            for row in db.execute(f"select * from {_quoted(table)} order by rowid"):
                yield dict(row)
    except sqlite3.Error as e:
        raise _damaged(path, e) from e


def has_unwritten_changes(path: Path) -> bool:
    """Whether a program has changes in its journal that are not in the file itself: `rows_of` does not see them."""
    journal = path.with_name(path.name + "-wal")
    try:
        return journal.stat().st_size > 0
    except OSError:
        return False


def _check_size(db: sqlite3.Connection, path: Path) -> None:
    """SQLite itself takes the bytes that are missing from a last page for zeros."""
    (pages,), (size,) = db.execute("pragma page_count").fetchone(), db.execute("pragma page_size").fetchone()
    if (there := path.stat().st_size) < pages * size:
        raise InputError(
            f"{path.name} is cut off: of its {pages * size:,} bytes {there:,} are there; copy it again."
        )


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    db.execute("pragma trusted_schema = off")  # what a foreign schema calls does not run
    db.execute("pragma query_only = on")
    return db


def _damaged(path: Path, error: sqlite3.Error) -> InputError:
    return InputError(f"{path.name} is a damaged SQLite database: {error}.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
