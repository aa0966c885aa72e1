"""Redactions: texts taken out of every table, and the record that they were, without the texts (DESIGN 2.7)."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from core.errors import InputError
from core.importers.splits import text_key
from core.record import Record, canonical_json, content_hash
from core.store.database import Database
from core.store.events import Events
from core.store.groups import ANSWER_SHOWN
from core.store.integrity import rebuild_words
from core.store.needle import Needle
from core.store.sweep import Replacement, Sweep, strings

COLUMNS = "id, at, actor, kind, reason, places, proved_at"
DROPPED = ("calls", "embeddings")
"""Tables whose rows go when the text is in them: a reply that was changed is not what the model said; a vector is
computed again."""
TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"


class Redacted(Record):
    """That something was redacted; never what."""

    id: int
    at: str
    actor: str
    kind: str
    """What kind of thing it was: "secret", "personal data"."""
    reason: str
    proved_at: str | None = None
    """When the files were searched for it and nothing was found; None = not yet, or something was."""

    @property
    def tombstone(self) -> str:
        return f"[redacted {self.at[:10]} #{self.id}]"


class Counted(NamedTuple):
    """Where texts are."""

    places: dict[str, int]
    """Occurrences by table and column."""
    by_chance: int
    """Ids, hashes and times that hold them by chance; they stay."""


class Replaced(NamedTuple):
    """What was rewritten."""

    places: dict[str, int]
    """Occurrences by table and column."""
    changed: dict[str, list[int]]
    """Rowids of rewritten rows by table."""
    calls: int
    """Replies that were dropped from the cache."""
    embeddings: int
    """Vectors that were dropped: they are of no text that is still there."""


class Redactions:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def all(self) -> list[Redacted]:
        rows = self._database.rows(f"SELECT {COLUMNS} FROM redactions ORDER BY id")
        return [_redacted(row) for row in rows]

    def of(self, text: str) -> Redacted | None:
        """The redaction of a text, if there was one. Slow on purpose: a hash that is quick is guessed."""
        for row in self._database.rows(f"SELECT {COLUMNS}, salt, hash FROM redactions ORDER BY id DESC"):
            if _hash(text, row.pop("salt")) == row.pop("hash"):
                return _redacted(row)
        return None

    def count(self, needles: Sequence[Needle]) -> Counted:
        """Where the texts are; nothing is changed."""
        sweep = Sweep(self._database.handle.conn, [(needle, "") for needle in needles])
        sweep.count()
        return Counted(dict(sorted(sweep.places.items())), len(sweep.kept))

    def plan(self, texts: Sequence[str], actor: str, kind: str, reason: str) -> list[Redacted]:
        """The record of each text: the one that there is, or the next one."""
        number = int(self._database.value("SELECT coalesce(max(id), 0) FROM redactions"))
        at = self._events.clock()
        planned = []
        for text in texts:
            record = self.of(text)
            if record is None:
                number += 1
                record = Redacted(id=number, at=at, actor=actor, kind=kind, reason=reason)
            planned.append(record)
        return planned

    def replace(self, replacements: Sequence[Replacement]) -> Replaced:
        """Take the texts out of every table, in an open transaction.

        All triggers are lifted for this transaction, and put back in it: the log is append-only for everybody else, and
        the search indexes, which they keep up, are made anew.

        Raises:
            InputError: two rows would no longer be told apart.
        """
        db = self._database.handle.conn
        db.execute("PRAGMA defer_foreign_keys = ON")
        triggers = db.execute(TRIGGERS).fetchall()
        for name, _ in triggers:
            db.execute(f'DROP TRIGGER "{name}"')
        sweep = Sweep(db, replacements)
        try:
            sweep.rewrite(drop=DROPPED)
        except sqlite3.IntegrityError as e:
            raise InputError(
                f"Without the text, two rows would be the same ({e}). Take more of the text, or less."
            ) from e
        self._rekey(sweep)
        embeddings = self._drop_embeddings() if sweep.places else 0
        rebuild_words(db)
        for _, sql in triggers:
            db.execute(sql)
        changed: dict[str, list[int]] = {}
        for table, rowid in sweep.changed:
            changed.setdefault(table, []).append(rowid)
        embeddings += sweep.dropped["embeddings"]
        return Replaced(dict(sorted(sweep.places.items())), changed, sweep.dropped["calls"], embeddings)

    def _rekey(self, sweep: Sweep) -> None:
        """The key of a task's text is a hash of it, by which the text could be guessed."""
        for table, rowid in sweep.changed:
            if table == "tasks":
                question = self._database.value("SELECT question FROM tasks WHERE rowid = ?", rowid)
                key = content_hash(text_key(question))
                self._database.execute("UPDATE tasks SET text_key = ? WHERE rowid = ?", key, rowid)

    def _drop_embeddings(self) -> int:
        """Drop the vectors whose text is no longer there, by hash; what is still needed is computed again."""
        db = self._database.handle.conn
        keys = {key for (key,) in db.execute("SELECT DISTINCT text_key FROM embeddings")}
        if keys:
            for text in strings(db):
                keys.discard(content_hash(text))
        for key in keys:
            db.execute("DELETE FROM embeddings WHERE text_key = ?", (key,))
        return len(keys)

    def cut_anew(self, rollout_id: str, answer: str) -> None:
        """Lists show the beginning of an answer: where it was cut off inside of a text, half of that would stay.

        Args:
            rollout_id: of a rollout whose trajectory was rewritten.
            answer: its whole answer, as rewritten.
        """
        beginning = answer[:ANSWER_SHOWN]
        self._database.execute("UPDATE rollouts SET answer = ? WHERE id = ?", beginning, rollout_id)

    def record(self, redacted: Redacted, text: str, places: dict[str, int]) -> None:
        """Write down that it was done, in the same transaction; what is there already stays."""
        if self._database.value("SELECT 1 FROM redactions WHERE id = ?", redacted.id):
            return
        salt = os.urandom(16).hex()
        row = redacted.model_dump() | {
            "salt": salt,
            "hash": _hash(text, salt),
            "places": canonical_json(places),
        }
        self._database.insert("redactions", row)

    def set_proved(self, redaction_id: int) -> None:
        """Write down that the files were searched, and nothing was found."""
        with self._database.writing():
            at = self._events.clock()
            self._database.execute("UPDATE redactions SET proved_at = ? WHERE id = ?", at, redaction_id)

    def names_of(self, replaced: Replaced, table: str, column: str = "id") -> list[str]:
        """What rewritten rows of a table are called, each once."""
        sql = f"SELECT {column} FROM {table} WHERE rowid = ?"
        found = (self._database.value(sql, rowid) for rowid in replaced.changed.get(table, ()))
        return list(dict.fromkeys(map(str, found)))

    def wipe(self) -> bool:
        """Write the file anew: no page and no journal holds what was there. False where a reader prevents it."""
        return wipe(self._database.handle.conn)

    def forget_pages(self) -> None:
        """Overwrite what is deleted, from now on, on this connection."""
        self._database.handle.conn.execute("PRAGMA secure_delete = ON")


def wipe(db: sqlite3.Connection) -> bool:
    """Write the file anew and empty its journal; False where a reader keeps the journal from being emptied."""
    db.execute("VACUUM")
    [busy, *_] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _hash(text: str, salt: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=bytes.fromhex(salt), n=2**14, r=8, p=1, dklen=32).hex()


def _redacted(row: dict[str, object]) -> Redacted:
    row.pop("places")
    return Redacted.model_validate(row)
