"""The file that is shared: who writes waits for their turn, and is told in one sentence when it does not come."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import BusyError
from core.store import database as module
from core.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "winnow.db")


@pytest.fixture
def other(database: Database) -> Iterator[sqlite3.Connection]:
    """Another one who holds the write lock."""
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_a_write_waits_for_its_turn(database: Database, other: sqlite3.Connection) -> None:
    tries = []

    def watch(sql: str) -> None:
        if sql.startswith("BEGIN"):
            tries.append(sql)
            if len(tries) == 4:
                other.execute("COMMIT")

    database.handle.conn.set_trace_callback(watch)
    with database.writing():
        database.execute("INSERT INTO roles VALUES ('judge', 'stub')")
    assert database.value("SELECT endpoint FROM roles") == "stub"
    assert len(tries) in (4, 5), "the lock was free from the fourth try on"


def test_a_write_whose_turn_does_not_come_is_refused_in_one_sentence(
    database: Database, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.05)
    with pytest.raises(BusyError, match=r"nothing was changed\. Try again later"), database.writing():
        raise AssertionError("it does not hold the lock")
    assert not database.handle.conn.in_transaction
    other.execute("ROLLBACK")
    with database.writing():
        database.execute("INSERT INTO roles VALUES ('judge', 'stub')")
    assert database.value("SELECT count(*) FROM roles") == 1


def test_what_only_reads_does_not_wait(database: Database, other: sqlite3.Connection) -> None:
    other.execute("INSERT INTO roles VALUES ('judge', 'stub')")
    assert database.value("SELECT count(*) FROM roles") == 0


def test_other_statements_wait_as_long_as_ever_once_a_write_has_begun(database: Database) -> None:
    with database.writing():
        assert database.value("PRAGMA busy_timeout") == module.BUSY_TIMEOUT_S * 1000
    assert database.value("PRAGMA busy_timeout") == module.BUSY_TIMEOUT_S * 1000


@pytest.mark.parametrize("waited_s", [0, 0.1, 1, 10, 59])
def test_who_has_waited_longer_looks_more_often_and_never_all_at_once(waited_s: float) -> None:
    pauses = [module._pause_s(waited_s) for _ in range(500)]
    assert min(pauses) >= module.LEAST_PAUSE_S
    assert max(pauses) <= 2 * module.FIRST_PAUSE_S
    assert sum(pauses) / len(pauses) <= 1.3 * max(
        module.LEAST_PAUSE_S, module.FIRST_PAUSE_S / (1 + 4 * waited_s)
    )


def test_writes_outside_of_a_transaction_are_refused(database: Database) -> None:
    with pytest.raises(RuntimeError, match="open transaction"):
        database.execute("INSERT INTO roles VALUES ('judge', 'stub')")
    with pytest.raises(RuntimeError, match="open transaction"):
        database.executemany("INSERT INTO roles VALUES (?, ?)", [("judge", "stub")])
    assert database.value("SELECT count(*) FROM roles") == 0


def test_many_rows_are_written_at_once_by_place_or_by_name(database: Database) -> None:
    with database.writing():
        by_place = database.executemany("INSERT INTO roles VALUES (?, ?)", [("judge", "a"), ("teacher", "b")])
        by_name = database.executemany(
            "INSERT INTO roles VALUES (:role, :endpoint)", [{"role": "x", "endpoint": "c"}]
        )
    assert (by_place, by_name) == (2, 1)
    assert [row["endpoint"] for row in database.rows("SELECT endpoint FROM roles ORDER BY 1")] == [
        "a",
        "b",
        "c",
    ]
