"""Tasks, and the rows that could not become one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from core.importers.splits import text_key
from core.record import canonical_json, content_hash
from core.rollout import SetAside, Split, Task
from core.store.database import Database, Row
from core.store.events import Events


class Added(NamedTuple):
    """What came of adding tasks: the numbers sum up to what was handed in."""

    added: int
    known: int
    """Already there with the same content."""
    refused: tuple[SetAside, ...]
    """An id that stands for another task here."""
    moved: tuple[str, ...]
    """Ids that went to another split, because a task with the same text is in it (DESIGN 2.10)."""


class Tasks:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def add(self, tasks: Sequence[Task], lines: Sequence[int], source: str, actor: str) -> Added:
        """Add tasks in order, all in one transaction.

        Args:
            tasks: what to add.
            lines: the line of the source that each came from, shape of `tasks`.
            source: name of the file.
            actor: who adds them.
        """
        added, known, refused, moved = 0, 0, [], []
        with self._database.writing():
            ordinal = self._database.value("SELECT coalesce(max(ordinal), 0) FROM tasks")
            for task, line in zip(tasks, lines, strict=True):
                if there := self.find(task.id):
                    same = there.model_copy(update={"split": task.split}) == task
                    known += same
                    if not same:
                        refused.append(_other_task(task, line, source))
                    continue
                same_text = content_hash(text_key(task.question))
                split = self._database.value("SELECT split FROM tasks WHERE text_key = ? LIMIT 1", same_text)
                if split and split != task.split:
                    moved.append(task.id)
                    task = task.model_copy(update={"split": split})  # noqa: PLW2901
                ordinal += 1
                self._database.insert("tasks", _row(task, ordinal, same_text, source, self._events.clock()))
                added += 1
            self.set_aside(refused)
            if added or refused:  # the same file again changes nothing, not even the log
                counts = {"added": added, "known": known, "refused": len(refused), "moved": len(moved)}
                self._events.append(actor, "tasks.imported", source, **counts)
        return Added(added, known, tuple(refused), tuple(moved))

    def set_aside(self, rows: Iterable[SetAside]) -> None:
        """Keep rows that were not imported; one that is there already is not kept twice."""
        with self._database.writing():
            for row in rows:
                self._database.execute(
                    "INSERT INTO set_aside (kind, source, line, reason, raw, at) SELECT ?1, ?2, ?3, ?4, ?5, ?6"
                    " WHERE NOT EXISTS (SELECT 1 FROM set_aside WHERE kind = ?1 AND source = ?2 AND line = ?3"
                    " AND raw = ?5)",
                    *(row.kind, row.source, row.line, row.reason, row.raw, self._events.clock()),
                )

    def kept_aside(self, limit: int = 1000) -> list[SetAside]:
        rows = self._database.rows(
            "SELECT kind, source, line, reason, raw FROM set_aside ORDER BY id DESC LIMIT ?", limit
        )
        return [SetAside(**row) for row in rows]

    def count_aside(self) -> int:
        return int(self._database.value("SELECT count(*) FROM set_aside"))

    def find(self, task_id: str) -> Task | None:
        row = self._database.row("SELECT * FROM tasks WHERE id = ?", task_id)
        return _task(row) if row else None

    def select(self, split: Split, domains: Sequence[str] = ()) -> list[Task]:
        """All tasks of a split, in the order they came in."""
        rows = self._database.rows("SELECT * FROM tasks WHERE split = ? ORDER BY ordinal", split)
        return [_task(row) for row in rows if not domains or row["domain"] in domains]

    def page(
        self, *, split: str = "", domain: str = "", search: str = "", limit: int = 50, offset: int = 0
    ) -> tuple[list[Task], int]:
        """One page of tasks and how many there are in all; empty filters take all."""
        where = (
            " FROM tasks WHERE (?1 = '' OR split = ?1) AND (?2 = '' OR domain = ?2)"
            " AND (?3 = '' OR instr(lower(question), lower(?3)) > 0 OR id = ?3)"
        )
        total = self._database.value("SELECT count(*)" + where, split, domain, search)
        rows = self._database.rows(
            "SELECT *" + where + " ORDER BY ordinal LIMIT ?4 OFFSET ?5", split, domain, search, limit, offset
        )
        return [_task(row) for row in rows], int(total)

    def sources(self) -> list[str]:
        """Names of the files that the tasks came from."""
        return [
            row["source"] for row in self._database.rows("SELECT DISTINCT source FROM tasks ORDER BY source")
        ]

    def counts(self) -> dict[str, dict[str, int]]:
        """Number of tasks by domain and split."""
        found: dict[str, dict[str, int]] = {}
        for row in self._database.rows(
            "SELECT domain, split, count(*) AS n FROM tasks GROUP BY domain, split ORDER BY min(ordinal)"
        ):
            found.setdefault(row["domain"], {})[row["split"]] = row["n"]
        return found


def _other_task(task: Task, line: int, source: str) -> SetAside:
    reason = f"the id {task.id!r} stands for another task in this workspace; give this one another id"
    return SetAside(kind="task", source=source, line=line, reason=reason, raw=task.canonical())


def _row(task: Task, ordinal: int, text_key: str, source: str, at: str) -> Row:
    return {
        "id": task.id,
        "ordinal": ordinal,
        "question": task.question,
        "answer": task.answer,
        "verifier": task.verifier.canonical(),
        "domain": task.domain,
        "split": task.split,
        "metadata": canonical_json(task.metadata),
        "text_key": text_key,
        "source": source,
        "imported_at": at,
    }


def _task(row: Row) -> Task:
    return Task(
        id=row["id"],
        question=row["question"],
        answer=row["answer"],
        verifier=json.loads(row["verifier"]),
        domain=row["domain"],
        split=row["split"],
        metadata=json.loads(row["metadata"]),
    )
