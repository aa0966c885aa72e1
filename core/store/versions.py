"""Versions of the library. A state of an experience holds from one version up to another.

So a version costs what it changes, any version can be read with one query, and nothing is erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.errors import NotFoundError, StaleVersionError
from core.experience import Experience, Version
from core.library import Library
from core.store.database import Database, Row
from core.store.events import Events

AT = "s.from_version <= ?1 AND (s.to_version IS NULL OR s.to_version > ?1)"


class Versions:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def head(self) -> int:
        """Number of the newest version."""
        return int(self._database.value("SELECT max(number) FROM versions"))

    def get(self, number: int) -> Version:
        """One version.

        Raises:
            NotFoundError: there is no such version.
        """
        row = self._database.row("SELECT * FROM versions WHERE number = ?", number)
        if row is None:
            raise NotFoundError(f"There is no version {number}; the newest is {self.head()}.")
        return self._version(row)

    def newest(self, limit: int = 50, before: int | None = None) -> list[Version]:
        rows = self._database.rows(
            "SELECT * FROM versions WHERE ?1 IS NULL OR number < ?1 ORDER BY number DESC LIMIT ?2",
            before,
            limit,
        )
        return [self._version(row) for row in rows]

    def _version(self, row: Row) -> Version:
        ids = self._database.rows(
            "SELECT id FROM proposals WHERE published_in = ? ORDER BY number", row["number"]
        )
        return Version(**row, proposal_ids=tuple(r["id"] for r in ids))

    def library(self, number: int | None = None) -> Library:
        """The library at a version (the newest where none is named), dead experiences included.

        Raises:
            NotFoundError: there is no such version.
        """
        version = self.head() if number is None else self.get(number).number
        rows = self._database.rows(
            "SELECT e.id, s.text, s.kind, s.domain, s.confidence, s.uses, s.wins, e.epoch, s.status, s.merged_into,"
            f" s.proposal_id, s.learned_on FROM experience_states s JOIN experiences e ON e.id = s.experience_id"
            f" WHERE {AT} ORDER BY e.number",
            version,
        )
        return Library.of((Experience(**row) for row in rows), version)

    def next_number(self) -> int:
        """Number of the next new experience; ids are never used twice."""
        return 1 + int(self._database.value("SELECT coalesce(max(number), 0) FROM experiences"))

    def history(self, experience_id: str) -> list[tuple[int, int | None, Experience]]:
        """(from version, to version, state) of one experience, the oldest first.

        Raises:
            NotFoundError: there never was such an experience.
        """
        rows = self._database.rows(
            "SELECT s.from_version, s.to_version, e.id, s.text, s.kind, s.domain, s.confidence, s.uses, s.wins,"
            " e.epoch, s.status, s.merged_into, s.proposal_id, s.learned_on FROM experience_states s"
            " JOIN experiences e ON e.id = s.experience_id WHERE e.id = ? ORDER BY s.from_version",
            experience_id,
        )
        if not rows:
            raise NotFoundError(
                f"There is no experience {experience_id!r} in this workspace; `winnow library list` shows them."
            )
        return [(row.pop("from_version"), row.pop("to_version"), Experience(**row)) for row in rows]

    def save(
        self, before: Library, after: Library, *, parent: int, author: str, message: str, event: str
    ) -> Version:
        """Write a new version inside an open transaction, if `parent` is still the newest.

        Raises:
            StaleVersionError: the library moved on since.
        """
        with self._database.writing():
            if (found := self.head()) != parent:
                moved = self.get(found)
                raise StaleVersionError(parent, found, f"{moved.author} published {moved.message!r}")
            number = parent + 1
            row = {
                "number": number,
                "parent": parent,
                "author": author,
                "message": message,
                "created_at": self._events.clock(),
                "size": len(after),
            }
            self._database.insert("versions", row)
            self._write_states(before, after.experiences.values(), number)
            self._events.append(author, event, str(number), parent=parent, message=message, size=len(after))
        return self.get(number)

    def _write_states(self, before: Library, states: Iterable[Experience], number: int) -> None:
        for experience in states:
            old = before.experiences.get(experience.id)
            if old == experience:
                continue
            self._save_identity(experience)
            self._database.execute(
                "UPDATE experience_states SET to_version = ? WHERE experience_id = ? AND to_version IS NULL",
                *(number, experience.id),
            )
            self._database.insert("experience_states", _state(experience, number))

    def _save_identity(self, experience: Experience) -> None:
        """Keep what belongs to the id for life."""
        self._database.execute(
            "INSERT INTO experiences (id, number, epoch) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
            *(experience.id, int(experience.id.rpartition("-")[2]), experience.epoch),
        )

    def as_of(self, library: Library, head: Library) -> Library:
        """The library that a rollback to `library` gives: later experiences are deleted, never forgotten."""
        states = dict(library.experiences)
        for experience in head.experiences.values():
            if experience.id not in states:
                states[experience.id] = experience.model_copy(update={"status": "deleted"})
        return Library.of(states.values(), head.version)

    def texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Present texts of live experiences by id; others are absent."""
        library = self.library()
        return {i: library.experiences[i].text for i in ids if i in library.experiences}


def _state(experience: Experience, from_version: int) -> Row:
    return {
        "experience_id": experience.id,
        "from_version": from_version,
        "to_version": None,
        "text": experience.text,
        "kind": experience.kind,
        "domain": experience.domain,
        "status": experience.status,
        "merged_into": experience.merged_into,
        "proposal_id": experience.proposal_id,
        "learned_on": experience.learned_on,
        "confidence": experience.confidence,
        "uses": experience.uses,
        "wins": experience.wins,
    }
