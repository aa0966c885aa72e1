"""Whether a database is sound: pages, schema, references, rows that can be read, and what hangs together."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Literal

from core.record import Record

SHOWN = 5
"""Rows that are named of one kind of finding."""

Mend = Literal["fts", "leases", "vacuum", "checkpoint", "locks", "leftovers"]
"""What `--fix` can do: nothing of it changes what is told."""


class Finding(Record):
    """One thing that is not as it should be."""

    what: str
    where: str
    how: str
    """How to mend it."""
    mend: Mend | None = None
    """What `winnow doctor --fix` does about it; None where a person has to."""


# -- one file, as SQLite sees it -----------------------------------------------------------------------------


def damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong: pages, indexes, references.

    Raises:
        sqlite3.DatabaseError: it cannot even look.
    """
    return pages(db) or references(db)


def pages(db: sqlite3.Connection) -> list[str]:
    """Damaged pages and indexes."""
    return [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]


def references(db: sqlite3.Connection) -> list[str]:
    """Rows that point to rows that are not there."""
    rows = db.execute("PRAGMA foreign_key_check").fetchall()
    return [f"row {rowid} of {table} points to no row of {parent}" for table, rowid, parent, _ in rows]


def applied(db: sqlite3.Connection) -> tuple[str, ...]:
    """Names of Winnow's migrations that made a database; none where it is not one of Winnow's."""
    with suppress(sqlite3.OperationalError):  # no such table
        rows = db.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = 'winnow' ORDER BY id")
        return tuple(row[0] for row in rows)
    return ()


def known_migrations() -> tuple[str, ...]:
    """Names of the migrations that this Winnow has, in order."""
    from core.migrations import MIGRATIONS

    return tuple(migration.name for migration in MIGRATIONS._migrations)


def schema_differences(db: sqlite3.Connection) -> list[str]:
    """What is missing of Winnow's schema, is other than it should be, or acts on its own (a trigger, a view)."""
    from sqlite_utils import Database as SqliteUtils

    from core.migrations import MIGRATIONS

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        MIGRATIONS.apply(SqliteUtils(fresh, execute_plugins=False))
        wanted, found = _schema(fresh), _schema(db)
    missing = [f"the {kind} {name} is missing" for kind, name in wanted if (kind, name) not in found]
    other = [
        f"the {k} {n} is other than it should be"
        for (k, n), sql in wanted.items()
        if found.get((k, n), sql) != sql
    ]
    more = [
        f"there is a {k} {n} that is not Winnow's"
        for k, n in found
        if (k, n) not in wanted and k in ("trigger", "view")
    ]
    return missing + other + more


def _schema(db: sqlite3.Connection) -> dict[tuple[str, str], str]:
    rows = db.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
    )
    return {(kind, name): re.sub(r"\s+", " ", sql) for kind, name, sql in rows}


def tables(db: sqlite3.Connection) -> list[str]:
    """The tables that hold what Winnow wrote: not those of SQLite, of migrations, or inside of a search index."""
    rows = db.execute(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' ORDER BY name"
    )
    return [name for (name,) in rows if not name.startswith(("sqlite_", "_sqlite"))]


def indexes_of_words(db: sqlite3.Connection) -> list[str]:
    """The full-text indexes."""
    rows = db.execute(
        "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%' ORDER BY name"
    )
    return [name for (name,) in rows]


def rebuild_words(db: sqlite3.Connection) -> None:
    """Make the full-text indexes anew from the rows that they are of."""
    for name in indexes_of_words(db):
        db.execute(f'INSERT INTO "{name}" ("{name}") VALUES (\'rebuild\')')


# -- what is in it -------------------------------------------------------------------------------------------


def unreadable(db: sqlite3.Connection) -> Iterator[Finding]:
    """Texts that are no UTF-8, and trajectories that cannot be unpacked; every row of every table is read."""
    names = tables(db)
    factory, db.text_factory = db.text_factory, bytes
    try:
        for name in names:
            cursor = db.execute(f'SELECT rowid, * FROM "{name}"')
            columns = [column[0] for column in cursor.description]
            for rowid, *values in cursor:
                for column, value in zip(columns[1:], values, strict=True):
                    if reason := _unreadable(name, column, value):
                        yield Finding(
                            what=f"a value {reason}",
                            where=f"{name}.{column}, row {rowid}",
                            how="Restore a backup.",
                        )
    finally:
        db.text_factory = factory


def _unreadable(table: str, column: str, value: object) -> str:
    if not isinstance(value, bytes):
        return ""
    try:
        if (table, column) == ("trajectories", "body"):
            json.loads(zlib.decompress(value))
        elif column != "vector":
            value.decode("utf-8")
    except UnicodeDecodeError:
        return "is not valid UTF-8"
    except (zlib.error, ValueError):
        return "cannot be unpacked"
    return ""


HANGING: dict[str, tuple[str, str]] = {
    "a rollout without its trajectory": (
        "SELECT id FROM rollouts r WHERE NOT EXISTS (SELECT 1 FROM trajectories WHERE rollout_id = r.id)",
        "Restore a backup, or take the run anew with `winnow jobs requeue`.",
    ),
    "a group whose number of rollouts is not what it says": (
        "SELECT id FROM groups g WHERE status <> 'waiting' AND EXISTS (SELECT 1 FROM rollouts WHERE group_id = g.id)"
        " AND size <> (SELECT count(*) FROM rollouts WHERE group_id = g.id)",
        "Restore a backup.",
    ),
    "an experience without any text": (
        "SELECT id FROM experiences e WHERE NOT EXISTS (SELECT 1 FROM experience_states WHERE experience_id = e.id)",
        "Restore a backup.",
    ),
    "a state of an experience that ends in no version": (
        "SELECT experience_id FROM experience_states WHERE to_version IS NOT NULL"
        " AND (to_version <= from_version OR to_version NOT IN (SELECT number FROM versions))",
        "Restore a backup.",
    ),
    "an experience that has two texts at once": (
        "SELECT DISTINCT a.experience_id FROM experience_states a JOIN experience_states b USING (experience_id)"
        " WHERE a.from_version < b.from_version AND (a.to_version IS NULL OR a.to_version > b.from_version)",
        "Restore a backup.",
    ),
    "an experience merged into one that is not there": (
        "SELECT experience_id FROM experience_states WHERE merged_into IS NOT NULL"
        " AND merged_into NOT IN (SELECT id FROM experiences)",
        "Restore a backup.",
    ),
    "an experience that came from a proposal that is not there": (
        "SELECT DISTINCT experience_id FROM experience_states WHERE proposal_id IS NOT NULL"
        " AND proposal_id NOT IN (SELECT id FROM proposals)",
        "Restore a backup; its provenance is lost.",
    ),
    "a version whose number of experiences is not what it says": (
        "SELECT number FROM versions v WHERE size <> (SELECT count(*) FROM experience_states WHERE status = 'live'"
        " AND from_version <= v.number AND (to_version IS NULL OR to_version > v.number))",
        "Restore a backup.",
    ),
    "a version whose parent is not the one before it": (
        "SELECT number FROM versions WHERE number > 0 AND parent IS NOT number - 1",
        "Restore a backup.",
    ),
    "a proposal that is published in no version": (
        "SELECT id FROM proposals WHERE (status = 'published') <> (published_in IS NOT NULL)"
        " OR published_in NOT IN (SELECT number FROM versions)",
        "Restore a backup.",
    ),
    "a role that names an endpoint that is not there": (
        "SELECT role FROM roles WHERE endpoint NOT IN (SELECT name FROM endpoints)",
        "Give it another one: `winnow endpoints role`.",
    ),
    "a vector of another size than its model has": (
        "SELECT model || ': ' || count(*) || ' of ' || length(vector) / 4 FROM embeddings WHERE length(vector) <>"
        " (SELECT length(o.vector) FROM embeddings o WHERE o.model = embeddings.model GROUP BY length(o.vector)"
        " ORDER BY count(*) DESC LIMIT 1) OR length(vector) % 4 GROUP BY model, length(vector)",
        "Restore a backup; or give the embedding model another name, and they are computed anew.",
    ),
}
"""What must not be, with a query that names the rows, and the way on."""


def hanging(db: sqlite3.Connection) -> list[Finding]:
    """Rows that do not fit together, beyond the references that SQLite checks."""
    found = []
    for what, (sql, how) in HANGING.items():
        ids = [str(row[0]) for row in db.execute(sql)]
        if ids:
            found.append(Finding(what=what, where=_some(ids), how=how))
    return found


def words_out_of_step(db: sqlite3.Connection) -> list[Finding]:
    """Full-text indexes that are damaged or do not hold what their rows hold. To be called in a transaction."""
    found = []
    for name in indexes_of_words(db):
        try:
            db.execute(f'INSERT INTO "{name}" ("{name}", rank) VALUES (\'integrity-check\', 1)')
        except sqlite3.DatabaseError:
            found.append(
                Finding(
                    what="a search index does not hold what its rows hold",
                    where=name,
                    how="`winnow doctor --fix` makes it anew.",
                    mend="fts",
                )
            )
    return found


def unparsed(table: str, ids: Iterable[str], read: Callable[[str], object]) -> Iterator[Finding]:
    """Rows of a table that no longer are what Winnow takes them for.

    Args:
        table: its name.
        ids: what its rows are read by.
        read: reads one, or fails.
    """
    for row_id in ids:
        try:
            read(row_id)
        except Exception as e:  # noqa: BLE001  # whatever it is: the row cannot be read
            yield Finding(
                what=f"a row that cannot be read ({type(e).__name__})",
                where=f"{table}, {row_id}",
                how="Restore a backup.",
            )


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
