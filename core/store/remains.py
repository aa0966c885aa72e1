"""What remains of texts in a database file: in its rows, in its search indexes, and in bytes that belong to neither.

1. Rows are looked through value by value (`sweep`): what is Winnow's own and holds a text by chance does not count.
2. Words in a search index are made from rows, and have no business there without them: each counts.
3. Pages that were set free, and rests inside pages, are what the file's bytes hold the text in more often than those of
   the same database written anew. Names of tables and columns, ids, and times of migrations are in both alike.
"""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

from core.errors import InputError
from core.store.integrity import applied
from core.store.needle import Needle, count_in
from core.store.sweep import Sweep

SQLITE = b"SQLite format 3\x00"
"""How a database begins."""
ANEW = "anew.db"
Scratch = Callable[[], AbstractContextManager[Path]]
SHADOWS = "SELECT name FROM pragma_table_list WHERE type = 'shadow' AND schema = 'main'"


def count_remains(path: Path, needles: Sequence[Needle], scratch: Scratch, data: bytes | None = None) -> int:
    """How often texts remain in a database; it is only read.

    Args:
        path: the file.
        needles: what to look for.
        scratch: opens a folder in which the database is written anew, where that is needed.
        data: its bytes, where it lies inside another file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with closing(_opened(path, data)) as db:
            sweep = Sweep(db, [(needle, "") for needle in needles])
            sweep.count()
            in_bytes = _in_bytes(path, needles) if data is None else count_in(io.BytesIO(data), needles)
            if in_bytes and applied(db):  # of another program's database, every byte is somebody's own
                in_bytes = max(0, in_bytes - _written_anew(db, needles, scratch)) + _in_indexes(db, needles)
            return sweep.places.total() + in_bytes
    except sqlite3.Error as e:
        raise InputError(f"{path} cannot be read as a database ({e}).") from e


def _opened(path: Path, data: bytes | None) -> sqlite3.Connection:
    if data is None:
        # The workspace's own file has a journal beside it; a copy has none, and none is to be made for it.
        how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
        return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    db = sqlite3.connect(":memory:")
    # A journal mode that needs a second file cannot be had in memory.
    db.deserialize(data[:18] + b"\x01\x01" + data[20:])
    return db


def _written_anew(db: sqlite3.Connection, needles: Sequence[Needle], scratch: Scratch) -> int:
    with scratch() as folder:
        db.execute("VACUUM INTO ?", (str(folder / ANEW),))
        return _in_bytes(folder / ANEW, needles)


def _in_bytes(path: Path, needles: Sequence[Needle]) -> int:
    with path.open("rb") as file:
        return count_in(file, needles)


def _in_indexes(db: sqlite3.Connection, needles: Sequence[Needle]) -> int:
    tables = db.execute(SHADOWS).fetchall()
    values = (value for (table,) in tables for row in db.execute(f'SELECT * FROM "{table}"') for value in row)
    return sum(n.count_bytes(value) for value in values if isinstance(value, bytes) for n in needles)
