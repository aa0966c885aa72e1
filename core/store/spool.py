"""What was read of files of recorded rollouts, on its way into a workspace.

It lies on disk: it may be large, and an import that was interrupted goes on where it stood.
"""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from core.store.database import Row

Fate = Literal["new", "known", "duplicate", "conflict", "child"]
Said = Literal["all", "changed", "none"]
"""Of which known attempts the user says the reward: of all, of those that read otherwise now, or of none."""

VERSION = 6
"""Of the schema: a spool of another version is not gone on with."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
    number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL, sha256 TEXT NOT NULL DEFAULT '',
    read_as TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '', became TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
    found INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS neighbours (path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    seq INTEGER PRIMARY KEY, file INTEGER NOT NULL, place TEXT NOT NULL, title TEXT NOT NULL,
    namespace TEXT NOT NULL, kin INTEGER NOT NULL DEFAULT 0, task TEXT NOT NULL, task_id TEXT,
    grp TEXT NOT NULL, scope TEXT NOT NULL, repeat INTEGER, own_id TEXT, content TEXT NOT NULL,
    identity TEXT NOT NULL, model TEXT NOT NULL, agent TEXT NOT NULL, fate TEXT NOT NULL, named TEXT,
    own INTEGER NOT NULL, broken INTEGER NOT NULL, reward REAL, outcome TEXT NOT NULL DEFAULT '', rollout_id TEXT,
    changed INTEGER NOT NULL DEFAULT 0, went_on INTEGER NOT NULL DEFAULT 0, said INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, no_result INTEGER NOT NULL, unknown INTEGER NOT NULL,
    retried INTEGER NOT NULL DEFAULT 0,
    weighed INTEGER NOT NULL DEFAULT 0, verified INTEGER NOT NULL DEFAULT 0, apart INTEGER NOT NULL DEFAULT 1,
    orphans INTEGER NOT NULL, calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL, size INTEGER NOT NULL, body BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS attempts_by_content ON attempts (content, file);
CREATE INDEX IF NOT EXISTS attempts_by_file ON attempts (file);
CREATE INDEX IF NOT EXISTS attempts_by_identity ON attempts (identity);
CREATE INDEX IF NOT EXISTS attempts_by_own_id ON attempts (own_id) WHERE own_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS attempts_by_group ON attempts (grp, scope, repeat);
CREATE TABLE IF NOT EXISTS superseded (
    seq INTEGER PRIMARY KEY, file INTEGER NOT NULL, fate TEXT NOT NULL, went_on INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS scores (
    seq INTEGER NOT NULL, name TEXT NOT NULL, value REAL, guessed INTEGER NOT NULL, PRIMARY KEY (seq, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks (
    key TEXT PRIMARY KEY, namespace TEXT NOT NULL, own_id TEXT, question TEXT NOT NULL, body BLOB NOT NULL,
    task_id TEXT, fresh INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS tasks_by_own_id ON tasks (namespace, own_id);
CREATE INDEX IF NOT EXISTS tasks_by_id ON tasks (task_id);
CREATE TABLE IF NOT EXISTS groups (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, first INTEGER NOT NULL, grown INTEGER NOT NULL DEFAULT 0,
    informative INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS aside (
    file INTEGER NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL, reason TEXT NOT NULL, raw TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS remarks (
    file INTEGER NOT NULL, text TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (file, text)
) STRICT, WITHOUT ROWID;
"""

AT_ONCE, AT_ONCE_BYTES, AT_ONCE_S = 500, 8_000_000, 2.0
"""A transaction is ended after so many records, bytes of bodies, or seconds."""


class Block(NamedTuple):
    """Attempts of one format and namespace, of which the format says the same on their reward."""

    title: str
    namespace: str
    named: str | None
    """The score that the format defines to be the reward."""
    kin: int
    """Of attempts without a namespace: which files' attempts are decided on together (`set_kin`)."""
    file: str
    """The first of them."""
    own: bool
    """Whether they bring their tasks whole: what has no reward is graded by its scores, or verified."""
    attempts: int


class Twin(NamedTuple):
    """An attempt that was read under the same id of its own."""

    seq: int
    place: str
    """For people, with its file."""
    task: str
    """Key of its task."""


FAULTS = (sqlite3.Error,)
"""What a spool raises where it cannot be written (a full disk, say): never the fault of a record."""


class Spool:
    """One import while it is under way. Not to be shared between threads."""

    def __init__(self, path: Path | None = None) -> None:
        """
        Args:
            path: of its file; None = a dry run: a temporary file that is gone when this is closed.
        """
        self.keeps = path is not None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect("" if path is None else path, isolation_level=None)
        if self.keeps:
            self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {'NORMAL' if self.keeps else 'OFF'}")
        self._db.executescript(SCHEMA)
        self._records = self._bytes = 0
        self._found = Counter[int]()
        """Records of each file that were read since the last commit."""
        self._since = time.monotonic()

    def close(self) -> None:
        """Write what is open, and let go of the file."""
        self.commit()
        self._db.close()

    # -- reading files ------------------------------------------------------------------------------

    def begin(self, path: str, name: str, sha256: str, read_as: str, title: str) -> tuple[int, int]:
        """Take up a file: (its number, how many of its records are here already; -1 = all).

        Of a file that changed since, nothing is kept.

        Args:
            path: of the file.
            name: what it is called.
            sha256: of its bytes.
            read_as: hash of these, and of how they are read.
            title: of its format.
        """
        row = self._row("SELECT * FROM files WHERE path = ?", path)
        if row and row["read_as"] == read_as:
            return row["number"], -1 if row["done"] else row["found"]
        if row:
            self._forget(row["number"])
        values = {"path": path, "name": name, "sha256": sha256, "read_as": read_as, "title": title}
        return self._insert("files", values | {"became": "read"}), 0

    def _forget(self, file: int) -> None:
        self._execute(  # where a still later state stands, in another file
            "UPDATE superseded SET file = s.file FROM attempts a JOIN attempts s ON s.own_id = a.own_id AND s.file <> ?"
            " AND s.fate IN ('new', 'known') WHERE a.seq = superseded.seq AND superseded.file = ?",
            *(file, file),
        )
        self._revive("file = ?", file)
        self._execute("DELETE FROM superseded WHERE seq IN (SELECT seq FROM attempts WHERE file = ?)", file)
        self._execute("DELETE FROM scores WHERE seq IN (SELECT seq FROM attempts WHERE file = ?)", file)
        for table in ("attempts", "aside", "remarks"):
            self._execute(f"DELETE FROM {table} WHERE file = ?", file)
        self._execute("DELETE FROM files WHERE number = ?", file)

    def left(self, path: str, name: str, became: str, reason: str) -> None:
        """Note a file that is not read."""
        self._execute("DELETE FROM files WHERE path = ?", path)
        self._insert("files", {"path": path, "name": name, "became": became, "reason": reason, "done": 1})

    def end(self, file: int, neighbours: Iterable[str], became: str, reason: str = "") -> None:
        """A file is read to its end."""
        self._execute(
            "UPDATE files SET done = 1, became = ?, reason = ? WHERE number = ?", became, reason, file
        )
        for path in neighbours:
            self._execute("INSERT OR IGNORE INTO neighbours VALUES (?)", path)
        self.commit()

    def tick(self, file: int) -> None:
        """One more record of a file is here; now and then the transaction is ended."""
        self._found[file] += 1
        self._records += 1
        if (
            self._records >= AT_ONCE
            or self._bytes >= AT_ONCE_BYTES
            or time.monotonic() - self._since > AT_ONCE_S
        ):
            self.commit()

    def commit(self) -> None:
        """End the transaction: what was read is kept with how much of its file that is."""
        for file, more in self._found.items():
            self._execute("UPDATE files SET found = found + ? WHERE number = ?", more, file)
        self._found.clear()
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._records, self._bytes, self._since = 0, 0, time.monotonic()

    def settle_files(self) -> None:
        """Files that belong to another one are no files in an unknown format."""
        self._execute(
            "UPDATE files SET became = 'side file', reason = '' WHERE became = 'skipped' AND path IN"
            " (SELECT path FROM neighbours)"
        )
        self.commit()

    def aside(self, file: int, name: str, place: str, reason: str, raw: str) -> None:
        self._insert("aside", {"file": file, "name": name, "place": place, "reason": reason, "raw": raw})

    def remark(self, file: int, text: str) -> None:
        self._execute(
            "INSERT INTO remarks VALUES (?, ?, 1) ON CONFLICT (file, text) DO UPDATE SET count = count + 1",
            file,
            text,
        )

    def set_fact(self, name: str, value: Any) -> None:
        self._execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, json.dumps(value))

    def fact(self, name: str) -> Any:
        row = self._row("SELECT value FROM facts WHERE name = ?", name)
        return json.loads(row["value"]) if row else None

    # -- attempts -----------------------------------------------------------------------------------

    def add(self, attempt: Row, scores: Iterable[tuple[str, float | None, bool]], body: str | None) -> None:
        """Keep an attempt.

        Args:
            attempt: columns of `attempts`, without `seq`, `size` and `body`.
            scores: name, number, whether the number is our reading of a word.
            body: the attempt as JSON; None where it is not wanted any more.
        """
        compared = self.keeps or attempt["own_id"] is not None
        packed = zlib.compress(body.encode(), 1) if body is not None and compared else None
        row = {**attempt, "size": len(body or ""), "body": packed}
        seq = self._insert("attempts", row)
        self._bytes += len(packed or b"")
        for name, value, guessed in scores:
            self._execute("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)", seq, name, value, int(guessed))

    def add_task(self, key: str, namespace: str, own_id: str | None, question: str, body: str) -> None:
        """Keep a task; the first that is told of it stands."""
        self._execute(
            "INSERT OR IGNORE INTO tasks (key, namespace, own_id, question, body) VALUES (?, ?, ?, ?, ?)",
            *(key, namespace, own_id, question, zlib.compress(body.encode(), 1)),
        )

    def has_task(self, key: str) -> bool:
        return self._row("SELECT 1 AS there FROM tasks WHERE key = ?", key) is not None

    def times(self, file: int, content: str) -> int:
        """How often a content was read in a file."""
        return self._count("SELECT count(*) FROM attempts WHERE content = ? AND file = ?", content, file)

    def has(self, identity: str) -> bool:
        """Whether the same attempt is among what was read."""
        found = self._row(
            "SELECT 1 AS there FROM attempts WHERE identity = ? AND (fate <> 'conflict' OR own_id IS NOT NULL)"
            " LIMIT 1",
            identity,
        )
        return found is not None

    def twin(self, own_id: str) -> Twin | None:
        """What stands for an attempt's own id among what was read; None where nothing new does."""
        row = self._row(
            "SELECT seq, place, task, files.name FROM attempts JOIN files ON number = file WHERE own_id = ?"
            " AND body IS NOT NULL AND fate IN ('new', 'known') ORDER BY seq DESC LIMIT 1",
            own_id,
        )
        return Twin(row["seq"], f"{row['place']} of {row['name']}", row["task"]) if row else None

    def supersede(self, seq: int, file: int) -> None:
        """An attempt is an earlier state of one in another (or the same) file: it counts as repeated, as long as that
        file is what it is.
        """
        self._execute(
            "INSERT OR REPLACE INTO superseded SELECT seq, ?, fate, went_on FROM attempts WHERE seq = ?",
            file,
            seq,
        )
        self._execute("UPDATE attempts SET fate = 'duplicate', went_on = 0 WHERE seq = ?", seq)

    def revive(self, seq: int) -> None:
        """An attempt stands again as it did before it was superseded."""
        self._revive("seq = ?", seq)

    def _revive(self, which: str, *parameters: object) -> None:
        self._execute(
            "UPDATE attempts SET (fate, went_on) = (SELECT fate, went_on FROM superseded s WHERE s.seq = attempts.seq)"
            f" WHERE seq IN (SELECT seq FROM superseded WHERE {which})",
            *parameters,
        )
        self._execute(f"DELETE FROM superseded WHERE {which}", *parameters)

    def place_of_number(self, group: str, scope: str, repeat: int, *, ended: bool = False) -> str | None:
        """Where the attempt of a number stands among what was read; with `ended`, of those that did not break off."""
        row = self._row(
            "SELECT place FROM attempts WHERE grp = ? AND scope = ? AND repeat = ? AND fate IN ('new', 'known')"
            " AND NOT (? AND broken) LIMIT 1",
            *(group, scope, repeat, ended),
        )
        return row["place"] if row else None

    # -- which score is the reward ------------------------------------------------------------------

    def score_names(self) -> list[tuple[int, str]]:
        """(file, score with a number) of attempts without namespace of which no format defines the reward."""
        rows = self.rows(
            "SELECT DISTINCT a.file, s.name FROM attempts a LEFT JOIN scores s ON s.seq = a.seq AND s.value IS NOT NULL"
            f" WHERE {_OPEN} ORDER BY a.file, s.name"
        )
        return [(row["file"], row["name"] or "") for row in rows]

    def files_with_one_group(self) -> list[tuple[int, int]]:
        """Pairs of files with attempts of the same group, of attempts as in `score_names`."""
        rows = self.rows(
            "SELECT DISTINCT b.first, a.file FROM attempts a JOIN (SELECT grp, min(file) AS first FROM attempts a"
            f" WHERE {_OPEN} GROUP BY grp HAVING min(file) < max(file)) b ON b.grp = a.grp"
            f" WHERE {_OPEN} AND a.file <> b.first"
        )
        return [(row["first"], row["file"]) for row in rows]

    def set_kin(self, kin: Iterable[tuple[int, int]]) -> None:
        """Say of files, as in `score_names`, which are decided on together: (file, the same number for these)."""
        self._begin()
        self._db.executemany(f"UPDATE attempts AS a SET kin = ?2 WHERE file = ?1 AND {_OPEN}", kin)

    def blocks(self) -> list[Block]:
        rows = self.rows(
            "SELECT b.*, f.name AS file FROM (SELECT title, namespace, named, own, kin, count(*) AS attempts,"
            " min(file) AS number, min(seq) AS first FROM attempts WHERE fate IN ('new', 'known') AND broken = 0"
            " GROUP BY title, namespace, named, own, kin) b JOIN files f USING (number) ORDER BY first"
        )
        for row in rows:
            del row["number"], row["first"]
        return [Block(**{**row, "own": bool(row["own"])}) for row in rows]

    def names(self, block: Block) -> list[str]:
        """Scores of a block under which a number stands, by name."""
        return [
            row["name"]
            for row in self.rows(
                "SELECT DISTINCT name FROM scores s JOIN attempts a ON a.seq = s.seq WHERE value IS NOT NULL"
                f" AND fate IN ('new', 'known') AND {_IN_BLOCK} ORDER BY name",
                *_of(block),
            )
        ]

    def all_names(self) -> list[str]:
        return [
            row["name"]
            for row in self.rows("SELECT DISTINCT name FROM scores WHERE value IS NOT NULL ORDER BY name")
        ]

    def reward_by(self, block: Block, name: str, sign: float, said: Said) -> None:
        """Take a score, or minus it, as the reward of the attempts of a block.

        Args:
            block: the attempts.
            name: of the score.
            sign: 1 or -1.
            said: of which known attempts it takes the place of the reward that they have.
        """
        self._execute(
            f"UPDATE attempts SET said = {_SAID[said]},"
            " reward = (SELECT ? * value FROM scores s WHERE s.seq = attempts.seq AND name = ?)"
            f" WHERE {_IN_BLOCK}",
            *(sign, name, *_of(block)),
        )

    def set_rewards(self, rewards: Iterable[tuple[int, float | None]]) -> None:
        """Give attempts (by their place here) the reward that a side file names, or None where it names none."""
        self._begin()
        self._db.executemany("UPDATE attempts SET said = ?2 IS NOT NULL, reward = ?2 WHERE seq = ?1", rewards)

    def judge(self) -> None:
        """Say of each attempt whether it is scored, unscored or broken off."""
        self._execute(
            "UPDATE attempts SET outcome = CASE WHEN broken THEN 'error' WHEN reward IS NULL THEN 'unscored'"
            " ELSE 'scored' END, reward = iif(broken, NULL, reward)"
        )
        self._execute(
            "INSERT OR IGNORE INTO groups (key, task, first)"
            " SELECT grp, task, min(seq) FROM attempts WHERE fate IN ('new', 'known') GROUP BY grp"
        )
        self.commit()

    # -- on the way into the workspace --------------------------------------------------------------

    def tasks(self) -> Iterator[Row]:
        """Tasks of new attempts, in order: key, namespace, own_id, body (JSON), and how many texts its id has."""
        for row in self._stream(
            "SELECT key, namespace, own_id, body FROM tasks WHERE key IN"
            " (SELECT task FROM attempts WHERE fate = 'new') ORDER BY rowid"
        ):
            yield {**row, "body": json.loads(zlib.decompress(row["body"]))}

    def task(self, key: str) -> Row:
        row = self._row("SELECT key, namespace, task_id, fresh, body FROM tasks WHERE key = ?", key)
        assert row is not None
        return {**row, "body": json.loads(zlib.decompress(row["body"]))}

    def name_task(self, key: str, task_id: str, fresh: bool) -> None:
        self._execute("UPDATE tasks SET task_id = ?, fresh = ? WHERE key = ?", task_id, int(fresh), key)

    def taken(self, task_id: str, key: str) -> bool:
        """Whether another task of this import has an id."""
        row = self._row("SELECT 1 AS there FROM tasks WHERE task_id = ? AND key <> ? LIMIT 1", task_id, key)
        return row is not None

    def due_groups(self, regraded: bool) -> Iterator[Row]:
        """Groups that get something and are not saved yet, in order: key, task, size (characters, unpacked).

        Args:
            regraded: whether known attempts, too, get another reward.
        """
        yield from self._stream(
            "SELECT g.key, g.task, sum(a.size) AS size FROM groups g JOIN attempts a ON a.grp = g.key"
            f" WHERE g.done = 0 AND {_gets_something(regraded)} GROUP BY g.key ORDER BY g.first"
        )

    def count_due(self, regraded: bool) -> int:
        """How many `due_groups` there are."""
        return self._count(
            "SELECT count(DISTINCT g.key) FROM groups g JOIN attempts a ON a.grp = g.key"
            f" WHERE g.done = 0 AND {_gets_something(regraded)}"
        )

    def attempts(self, group: str) -> list[Row]:
        """New and known attempts of a group, without their bodies; by run and number, else in their order."""
        return self.rows(
            "SELECT seq, identity, own_id, scope, repeat, read_as, place, fate, reward, broken, rollout_id, changed,"
            " went_on, said, own, weighed FROM attempts JOIN files ON number = file"
            " WHERE grp = ? AND fate IN ('new', 'known') ORDER BY seq",
            group,
        )

    def body(self, seq: int) -> str:
        """An attempt as JSON."""
        row = self._row("SELECT body FROM attempts WHERE seq = ?", seq)
        assert row is not None
        return zlib.decompress(row["body"]).decode()

    def became(self, outcomes: Iterable[tuple[int, str]]) -> None:
        """Say of attempts what became of them when they were saved."""
        self._begin()
        self._db.executemany("UPDATE attempts SET outcome = ?2 WHERE seq = ?1", outcomes)

    def verify(self, seqs: Iterable[int]) -> None:
        """Say of attempts that their task's verifier grades them."""
        self._begin()
        self._db.executemany("UPDATE attempts SET verified = 1 WHERE seq = ?", ((seq,) for seq in seqs))

    def known_by_now(self, attempts: Iterable[tuple[int, str]]) -> None:
        """Say of new attempts which rollouts they are: another import brought them meanwhile."""
        self._begin()
        self._db.executemany(
            "UPDATE attempts SET fate = 'known', outcome = '', rollout_id = ?2 WHERE seq = ?1", attempts
        )

    def group_done(self, key: str, *, informative: bool, grown: bool, done: bool = True) -> None:
        self._execute(
            "UPDATE groups SET informative = ?, grown = max(grown, ?), done = ? WHERE key = ?",
            *(int(informative), int(grown), int(done), key),
        )

    # -- counting -----------------------------------------------------------------------------------

    def rows(self, sql: str, *parameters: object) -> list[Row]:
        """All rows of a query, each a dict."""
        return list(self._stream(sql, *parameters))

    def _stream(self, sql: str, *parameters: object) -> Iterator[Row]:
        cursor = self._db.execute(sql, parameters)
        names = [column[0] for column in cursor.description or ()]
        for row in cursor:
            yield dict(zip(names, row, strict=True))

    def _row(self, sql: str, *parameters: object) -> Row | None:
        return next(self._stream(sql, *parameters), None)

    def _count(self, sql: str, *parameters: object) -> int:
        return int(self._db.execute(sql, parameters).fetchone()[0])

    def _insert(self, table: str, row: Row) -> int:
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        return self._execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", *row.values())

    def _execute(self, sql: str, *parameters: object) -> int:
        self._begin()
        return self._db.execute(sql, parameters).lastrowid or 0

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN")


def _gets_something(regraded: bool) -> str:
    return (
        "a.fate IN ('new', 'known')"
        if regraded
        else "(a.fate = 'new' OR a.fate = 'known' AND (a.changed OR a.went_on))"
    )


_SAID: dict[Said, str] = {"all": "1", "changed": "changed", "none": "0"}
_OPEN = "a.namespace = '' AND a.named IS NULL AND NOT a.own AND a.fate IN ('new', 'known')"
_IN_BLOCK = "title = ? AND namespace = ? AND named IS ? AND own = ? AND kin = ?"


def _of(block: Block) -> tuple[object, ...]:
    return block.title, block.namespace, block.named, int(block.own), block.kin
