"""The append-only log: who did what, to what, when. Triggers refuse changes to it.

Beside what a person reads of an event (its data), the log keeps what the event made of its subject (its state): enough
that proposals, versions and labels can be rebuilt from the log alone (`core.store.replay`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from core.record import canonical_json
from core.rollout import Event
from core.store.database import Database, Row

Clock = Callable[[], str]
"""Gives the time now, UTC, ISO 8601."""

State = dict[str, Any]
COLUMNS = "id, at, actor, kind, subject, data"
LOOKED_AT = 20_000
"""Newest lines that people's names are gathered from."""


class Entry(NamedTuple):
    """One line of the log with what it made of its subject."""

    event: Event
    state: State | None
    """None where the event changed nothing that is rebuilt, or is older than the log's states."""


class Events:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.clock = clock

    def append(
        self,
        actor: str,
        kind: str,
        subject: str,
        state: State | None = None,
        at: str | None = None,
        /,
        **data: JsonValue,
    ) -> None:
        """Add a line, inside the transaction of what it tells of.

        Args:
            actor: who did it.
            kind: what was done.
            subject: to what.
            state: what it made of its subject, for the replay; see `core.store.replay`.
            at: when; None takes the time now.
            data: what a reader is to know besides.
        """
        row = {
            "at": at or self.clock(),
            "actor": actor,
            "kind": kind,
            "subject": subject,
            "data": canonical_json(data),
            "state": canonical_json(state) if state is not None else None,
        }
        self._database.insert("events", row)

    def newest(
        self, limit: int = 50, *, subject: str | None = None, before: int | None = None
    ) -> list[Event]:
        """The newest lines first, of one subject if named, older than event `before` if named.

        An experience has no lines of its own: those of its proposals and of the versions that changed it are its.
        """
        where, values = _chosen("", "", [] if subject is None else self._subjects(subject))
        older = " AND id < ?" if where else " WHERE id < ?"
        rows = self._database.rows(
            f"SELECT {COLUMNS} FROM events{where}{'' if before is None else older} ORDER BY id DESC LIMIT ?",
            *(*values, *([] if before is None else [before]), limit),
        )
        return [_event(row) for row in rows]

    def page(
        self,
        *,
        kind: str = "",
        but: str = "",
        actor: str = "",
        subject: str = "",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Event], int]:
        """One page, the newest lines first, and how many there are in all; empty filters take all.

        Args:
            kind: `proposal.approved`, or its first word alone for all of them.
            but: the first word of kinds that are left out.
            actor: who did it.
            subject: to what; of an experience, also what was done to its proposals and versions.
            limit: lines of a page.
            offset: lines before it.
        """
        where, values = _chosen(kind, actor, self._subjects(subject) if subject else [], but)
        total = self._database.value(f"SELECT count(*) FROM events{where}", *values)
        rows = self._database.rows(  # +: in the order of the log until the page is full, not all of a kind sorted
            f"SELECT {COLUMNS} FROM events{where.replace('kind BETWEEN', '+kind BETWEEN')}"
            " ORDER BY id DESC LIMIT ? OFFSET ?",
            *(*values, limit, offset),
        )
        return [_event(row) for row in rows], int(total)

    def _subjects(self, subject: str) -> list[str]:
        """What lines about a subject are found under: an experience is decided on and published under other names."""
        if not subject.startswith("E-"):
            return [subject]
        rows = self._database.rows(
            "SELECT proposal_id AS name FROM experience_states WHERE experience_id = ?1 AND proposal_id IS NOT NULL"
            " UNION SELECT CAST(from_version AS TEXT) FROM experience_states WHERE experience_id = ?1"
            " UNION SELECT id FROM proposals WHERE experience_id = ?1 OR instr(body, json_quote(?1))",
            subject,
        )
        return [subject, *(row["name"] for row in rows)]

    def mark(self, *but: str) -> int:
        """Id of the newest line that is not of one of these families ("claim"): another one when something happened."""
        conditions = "".join(" AND kind NOT BETWEEN ? AND ?" for _ in but)
        values = [edge for family in but for edge in (f"{family}.", f"{family}.~")]
        found = self._database.value(
            f"SELECT id FROM events WHERE 1{conditions} ORDER BY id DESC LIMIT 1", *values
        )
        return int(found or 0)

    def kinds(self) -> list[str]:
        """The kinds of lines that there are; looks once at each kind, not at each line."""
        rows = self._database.rows(
            "WITH RECURSIVE known (kind) AS (SELECT min(kind) FROM events UNION ALL"
            " SELECT (SELECT min(kind) FROM events WHERE kind > known.kind) FROM known WHERE kind IS NOT NULL)"
            " SELECT kind FROM known WHERE kind IS NOT NULL"
        )
        return [row["kind"] for row in rows]

    def actors(self) -> list[str]:
        """Who did something lately, by name."""
        rows = self._database.rows(
            "SELECT DISTINCT actor FROM (SELECT actor FROM events ORDER BY id DESC LIMIT ?) ORDER BY actor",
            LOOKED_AT,
        )
        return [row["actor"] for row in rows]

    def of(self, subject: str) -> list[Entry]:
        """Every line about a subject with its state, the oldest first."""
        rows = self._database.rows(
            f"SELECT {COLUMNS}, state FROM events WHERE subject = ? ORDER BY id", subject
        )
        return [_entry(row) for row in rows]

    def export_before_redaction(self, sha256: str) -> tuple[Event, Event] | None:
        """The newest export of a file and the newest redaction, if the export is the older one: it may hold the text.

        Lines are compared, not times, which are of whole seconds.
        """
        exports = self._database.rows(
            f"SELECT {COLUMNS} FROM events WHERE kind = 'pack.exported' AND json_extract(data, '$.sha256') = ?"
            " ORDER BY id DESC LIMIT 1",
            sha256,
        )
        redactions, _ = self.page(kind="workspace.redacted", limit=1)
        if not exports or not redactions or exports[0]["id"] > redactions[0].id:
            return None
        return _event(exports[0]), redactions[0]

    def every(self, batch: int = 1000) -> Iterator[Entry]:
        """The whole log with its states, the oldest line first; read in batches."""
        last = 0
        while rows := self._database.rows(
            f"SELECT {COLUMNS}, state FROM events WHERE id > ? ORDER BY id LIMIT ?", last, batch
        ):
            last = rows[-1]["id"]
            yield from map(_entry, rows)


def newest_of(database: Database, kinds: Sequence[str]) -> int:
    """Id of the newest line of these kinds, one look at the index for each; 0 where there is none."""
    found = database.value(
        "SELECT max((SELECT max(id) FROM events WHERE kind = value)) FROM json_each(?)",
        json.dumps(list(kinds)),
    )
    return int(found or 0)


def _chosen(kind: str, actor: str, subjects: Sequence[str], but: str = "") -> tuple[str, list[object]]:
    """A condition for each filter that is set, so that the index of each is used; and its values."""
    conditions = []
    values: list[object] = []
    if kind and "." in kind:
        conditions.append("kind = ?")
        values.append(kind)
    elif kind:
        conditions.append("kind BETWEEN ? AND ?")
        values += [f"{kind}.", f"{kind}.~"]
    if but:
        conditions.append("kind NOT BETWEEN ? AND ?")
        values += [f"{but}.", f"{but}.~"]
    if actor:
        conditions.append("actor = ?")
        values.append(actor)
    if len(subjects) == 1:  # so that the index of subjects gives the order, too
        conditions.append("subject = ?")
        values += subjects
    elif subjects:
        conditions.append("subject IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(subjects)))
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), values


def _entry(row: Row) -> Entry:
    state = row.pop("state")
    return Entry(_event(row), json.loads(state) if state else None)


def _event(row: Row) -> Event:
    return Event(**{**row, "data": json.loads(row["data"])})
