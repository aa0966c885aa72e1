"""Labels: names such as `production` that point at versions of the library."""

from __future__ import annotations

import re
from typing import Literal

from core.errors import ApplyError, InputError, NotFoundError
from core.record import Record
from core.store.database import Database, Row
from core.store.events import Events

PROTECTED = ("production",)
"""Labels that are protected from the start, unless the one who makes them says otherwise."""

RESERVED = ("newest", "latest", "head")
"""They would say something that a label does not do: move by themselves."""


Expected = int | Literal["anything", "nothing"]
"""Where a label points as far as the one who moves it knows; nothing where it is not there yet."""


class Label(Record):
    """A name for a version, which can be moved to another one."""

    name: str
    version: int
    protected: bool = False
    """A protected label is moved or removed only by somebody who says so explicitly."""
    moved_by: str
    moved_at: str
    """UTC, ISO 8601."""


class Labels:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def all(self) -> list[Label]:
        """Every label by its name."""
        return [_label(row) for row in self._database.rows("SELECT * FROM labels ORDER BY name")]

    def of(self, version: int) -> list[str]:
        """Names that point at a version."""
        return [label.name for label in self.all() if label.version == version]

    def find(self, name: str) -> Label | None:
        row = self._database.row("SELECT * FROM labels WHERE name = ?", name)
        return _label(row) if row else None

    def set(
        self,
        name: str,
        version: int,
        actor: str,
        *,
        protect: bool | None = None,
        force: bool = False,
        expected: Expected = "anything",
    ) -> Label:
        """Point a label at a version; where it does so already, nothing changes, whatever was expected.

        Args:
            name: letters, digits, dots, dashes and underscores; it starts with a letter.
            version: which version.
            actor: who moves it.
            protect: whether it is protected from now on; None keeps that as it is (a new one is protected if it is
                called `production`).
            force: move it although it is protected.
            expected: where it points when it is moved (compare and swap).

        Raises:
            InputError: it is no name, or it is protected.
            NotFoundError: there is no such version.
            ApplyError: it points elsewhere than expected; the message says where, since when and by whom.
        """
        _check_name(name)
        with self._database.writing():
            was = self.find(name)
            self._check_version(version)
            protected = protect if protect is not None else was.protected if was else name in PROTECTED
            if was and (was.version, was.protected) == (version, protected):
                return was
            _refuse_moved(name, was, expected)
            _refuse_protected(was, force, f"winnow label set {name} {version} --force")
            at = self._events.clock()
            label = Label(name=name, version=version, protected=protected, moved_by=actor, moved_at=at)
            self._database.execute("DELETE FROM labels WHERE name = ?", name)
            self._database.insert("labels", label.model_dump())
            self._events.append(
                actor,
                "label.set",
                name,
                {"label": {"version": version, "protected": protected}},
                at,
                version=version,
                was=was.version if was else None,
                protected=protected,
            )
        return label

    def remove(self, name: str, actor: str, *, force: bool = False, expected: Expected = "anything") -> Label:
        """Take a label away; gives what it was.

        Raises:
            NotFoundError: there is no such label.
            InputError: it is protected.
            ApplyError: it points elsewhere than expected.
        """
        with self._database.writing():
            was = self.find(name)
            if was is None:
                raise NotFoundError(f"There is no label {name!r}; `winnow label list` shows them.")
            _refuse_moved(name, was, expected)
            _refuse_protected(was, force, f"winnow label remove {name} --force")
            self._database.execute("DELETE FROM labels WHERE name = ?", name)
            self._events.append(actor, "label.removed", name, {"label": None}, was=was.version)
        return was

    def _check_version(self, version: int) -> None:
        newest = self._database.value("SELECT max(number) FROM versions")
        if not 0 <= version <= newest:
            raise NotFoundError(f"There is no version {version}; the newest is {newest}.")


def _refuse_moved(name: str, was: Label | None, expected: Expected) -> None:
    if expected == "anything" or (was.version if was else "nothing") == expected:
        return
    there = (
        f"points at version {was.version} since {was.moved_by} moved it at {was.moved_at}"
        if was
        else "is not there"
    )
    meant = "you expected no such label" if expected == "nothing" else f"you expected version {expected}"
    raise ApplyError(f"The label {name} {there}, but {meant}; nothing was changed.")


def _refuse_protected(was: Label | None, force: bool, command: str) -> None:
    if was and was.protected and not force:
        raise InputError(
            f"The label {was.name} is protected and points at version {was.version}; nothing was changed. "
            f"To do it nevertheless: {command}"
        )


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,63}", name):
        raise InputError(
            f"{name!r} cannot be a label: use 1 to 64 letters, digits, dots, dashes or underscores, a letter first."
        )
    if name.lower() in RESERVED:
        raise InputError(f"{name!r} cannot be a label: a label stays where it is put.")


def _label(row: Row) -> Label:
    return Label(**{**row, "protected": bool(row["protected"])})
