"""Tasks, and the rows that could not become one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from core.importers.splits import text_key
from core.ports import Progress, silent
from core.record import canonical_json, content_hash
from core.rollout import GroupRow, SetAside, Split, Task
from core.settings import VerifierSpec
from core.store.database import Database, Row
from core.store.events import Events

ANSWERED = "tasks.answered"
"""Kind of the event that tells which tasks got an answer."""

PORTION = 1_000
"""Tasks that are looked up and written at once."""


class Added(NamedTuple):
    """What came of adding tasks: added + known + refused + answered is what was handed in."""

    added: int
    known: int
    """Already there with the same content."""
    refused: tuple[SetAside, ...]
    """An id that stands for another task here."""
    moved: tuple[str, ...]
    """Ids that went to another split, because a task with the same text is in it (DESIGN 2.10)."""
    answered: tuple[str, ...]
    """Ids of tasks that were here without a verifier, and have one and an answer now."""
    splits: dict[Split, int]
    """Split -> tasks that were added."""
    stay: dict[Split, int]
    """Split -> tasks that were here in it, and stay, though another one was asked for."""


class Against(NamedTuple):
    """What would come of adding tasks to a workspace: new = all - known - taken - answered."""

    known: frozenset[str]
    """Ids that are there with the same content."""
    taken: frozenset[str]
    """Ids that stand for another task here: refused."""
    moved: dict[str, Split]
    """Ids that would go to this split, because a task with the same text is in it."""
    repeated: dict[str, str]
    """Ids whose text is there already under another id: that id."""
    answered: frozenset[str]
    """Ids that are there without a verifier, and would get one and an answer."""
    stay: dict[str, Split]
    """Ids that are there in this split, and stay, though another one is asked for."""


class Tasks:
    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def add(
        self,
        tasks: Sequence[Task],
        lines: Sequence[int],
        source: str,
        actor: str,
        progress: Progress = silent,
    ) -> Added:
        """Add tasks in order, all in one transaction.

        A task that is here without a verifier, as those that came in with recorded rollouts are, gets that of a task
        with its id and its question, and the answer where it has none. What stands here is never changed.

        Args:
            tasks: what to add.
            lines: the line of the source that each came from, shape of `tasks`.
            source: name of the file.
            actor: who adds them.
            progress: told after each portion.
        """
        known, refused, moved, answered = 0, [], [], []
        splits, stay = Counter[Split](), Counter[Split]()
        with self._database.writing():
            ordinal, at = self._newest(), self._events.clock()
            numbered = list(zip(tasks, lines, strict=True))
            for start in range(0, len(numbered), PORTION):
                portion = numbered[start : start + PORTION]
                keys = [_text_hash(task) for task, _ in portion]
                there, homes = self._like([task.id for task, _ in portion], keys)
                came_in = self._came_in(there)
                rows = []
                for (task, line), key in zip(portion, keys, strict=True):
                    if old := there.get(task.id):
                        became = _beside(old, task, came_in)
                        known += became == "known"
                        if became == "answered":
                            there[task.id] = self._answer(old, task)
                            answered.append(task.id)
                        elif became == "taken":
                            refused.append(other_task(task, line, source))
                        stay[old.split] += became != "taken" and old.split != task.split
                        continue
                    split = homes.setdefault(key, (task.id, task.split))[1]
                    if split != task.split:
                        moved.append(task.id)
                        task = task.model_copy(update={"split": split})  # noqa: PLW2901
                    there[task.id] = task
                    ordinal += 1
                    splits[task.split] += 1
                    rows.append(_row(task, ordinal, key, source, at))
                self._insert(rows)
                progress("tasks", start + len(portion), len(numbered))
            self.set_aside(refused)
            added = splits.total()
            if added or refused:  # the same file again changes nothing, not even the log
                counts = {"added": added, "known": known, "refused": len(refused), "moved": len(moved)}
                self._events.append(actor, "tasks.imported", source, **counts)
            if answered:
                self._events.append(actor, ANSWERED, source, tasks=[*answered])
        return Added(added, known, tuple(refused), tuple(moved), tuple(answered), dict(splits), dict(+stay))

    def _answer(self, old: Task, task: Task) -> Task:
        """Give a task that is here the verifier and the answer of another one."""
        answer = task.answer if old.answer is None else old.answer
        self._database.execute(
            "UPDATE tasks SET answer = ?, verifier = ? WHERE id = ?",
            *(answer, task.verifier.canonical(), old.id),
        )
        return old.model_copy(update={"answer": answer, "verifier": task.verifier})

    def against(self, tasks: Sequence[Task]) -> Against:
        """What would come of adding tasks; nothing is written."""
        became: dict[str, set[str]] = {"known": set(), "taken": set(), "answered": set()}
        moved, stay = dict[str, Split](), dict[str, Split]()
        repeated: dict[str, str] = {}
        for start in range(0, len(tasks), PORTION):
            portion = tasks[start : start + PORTION]
            keys = [_text_hash(task) for task in portion]
            there, homes = self._like([task.id for task in portion], keys)
            came_in = self._came_in(there)
            for task, key in zip(portion, keys, strict=True):
                if old := there.get(task.id):
                    fate = _beside(old, task, came_in)
                    became[fate].add(task.id)
                    if fate != "taken" and old.split != task.split:
                        stay[task.id] = old.split
                elif home := homes.get(key):
                    repeated[task.id] = home[0]
                    if home[1] != task.split:
                        moved[task.id] = home[1]
        known, taken, answered = (frozenset(became[fate]) for fate in ("known", "taken", "answered"))
        return Against(known, taken, moved, repeated, answered, stay)

    def meant(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Of tasks whose ids nobody chose: which task here each is, by its id; those that are new have no entry.

        It is the only one here that asks the same, it came in with recorded rollouts, and nothing of it is changed.
        """
        found: dict[str, str] = {}
        for start in range(0, len(tasks), PORTION):
            portion = {_text_hash(task): task for task in tasks[start : start + PORTION]}
            rows = self._database.rows(
                "SELECT *, count(*) AS alike FROM tasks WHERE text_key IN (SELECT value FROM json_each(?))"
                " GROUP BY text_key HAVING alike = 1",
                json.dumps(list(portion)),
            )
            came_in = self._came_in([row["id"] for row in rows])
            for row in rows:
                task = portion[row["text_key"]]
                if row["id"] in came_in and _beside(_task(row), task, came_in) != "taken":
                    found[task.id] = row["id"]
        return found

    def _came_in(self, ids: Iterable[str]) -> set[str]:
        """Those of these tasks that have recorded rollouts."""
        wanted = list(ids)
        if not wanted:
            return set()
        rows = self._database.rows(
            "SELECT DISTINCT task_id FROM recorded_tasks WHERE task_id IN (SELECT value FROM json_each(?))",
            json.dumps(wanted),
        )
        return {row["task_id"] for row in rows}

    def _like(
        self, ids: Sequence[str], keys: Sequence[str]
    ) -> tuple[dict[str, Task], dict[str, tuple[str, Split]]]:
        """Stored tasks with these ids, and (id, split) of the first stored task of each of these texts."""
        there = self._database.rows(
            "SELECT * FROM tasks WHERE id IN (SELECT value FROM json_each(?))", json.dumps(ids)
        )
        homes = self._database.rows(
            "SELECT text_key, split, min(ordinal), id FROM tasks WHERE text_key IN"
            " (SELECT value FROM json_each(?)) GROUP BY text_key",
            json.dumps(keys),
        )
        return (
            {row["id"]: _task(row) for row in there},
            {row["text_key"]: (row["id"], row["split"]) for row in homes},
        )

    def _insert(self, rows: Sequence[Row]) -> None:
        if rows:
            columns, marks = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
            self._database.executemany(
                f"INSERT INTO tasks ({columns}) VALUES ({marks})", [tuple(row.values()) for row in rows]
            )

    def set_aside(self, rows: Iterable[SetAside], files: Sequence[str] = ()) -> None:
        """Keep rows that were not imported; one that is there already is not kept twice.

        Args:
            rows: as they were read.
            files: hash of the file of each, where it is known.
        """
        with self._database.writing():
            for place, row in enumerate(rows):
                self._database.execute(
                    "INSERT INTO set_aside (kind, source, line, reason, raw, at, file)"
                    " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7"
                    " WHERE NOT EXISTS (SELECT 1 FROM set_aside WHERE kind = ?1 AND source = ?2 AND line = ?3"
                    " AND reason = ?4 AND raw = ?5)",
                    *(row.kind, row.source, row.line, row.reason, row.raw, self._events.clock()),
                    files[place] if files else "",
                )

    def aside_of(self, files: Sequence[str]) -> set[tuple[str, int, str]]:
        """(file, line, reason) of the rows of some files (by hash) that are kept, whatever their texts are by now."""
        rows = self._database.rows(
            "SELECT file, line, reason FROM set_aside WHERE file <> '' AND file IN (SELECT value FROM json_each(?))",
            json.dumps(list(files)),
        )
        return {(row["file"], row["line"], row["reason"]) for row in rows}

    def kept_aside(self, limit: int = 1000) -> list[SetAside]:
        rows = self._database.rows(
            "SELECT kind, source, line, reason, raw FROM set_aside ORDER BY id DESC LIMIT ?", limit
        )
        return [SetAside(**row) for row in rows]

    def aside(
        self, kind: str, *, source: str = "", limit: int = 50, offset: int = 0
    ) -> tuple[list[SetAside], int]:
        """One page of the rows of a kind ("task", "rollout") that were not imported, the newest first."""
        where = " FROM set_aside WHERE kind = ?1 AND (?2 = '' OR source = ?2)"
        total = self._database.value("SELECT count(*)" + where, kind, source)
        rows = self._database.rows(
            f"SELECT kind, source, line, reason, raw{where} ORDER BY id DESC LIMIT ?3 OFFSET ?4",
            *(kind, source, limit, offset),
        )
        return [SetAside(**row) for row in rows], int(total)

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
        self,
        *,
        split: str = "",
        domain: str = "",
        kind: str = "",
        search: str = "",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Task], int]:
        """One page of tasks and how many there are in all; empty filters take all.

        Args:
            split: of the task.
            domain: of the task.
            kind: of its verifier.
            search: part of the question, or the id.
            limit: tasks of a page.
            offset: tasks before it.
        """
        where, values = _filter(split, domain, kind, search)
        total = self._database.value(f"SELECT count(*) FROM tasks{where}", *values)
        rows = self._database.rows(  # the place is found on an index; only the rows of this page are read
            f"SELECT * FROM tasks WHERE ordinal IN (SELECT ordinal FROM tasks{where} ORDER BY ordinal LIMIT ? OFFSET ?)"
            " ORDER BY ordinal",
            *(*values, limit, offset),
        )
        return [_task(row) for row in rows], int(total)

    def origin(self, task_id: str) -> tuple[str, str]:
        """The file that a task came from, and when."""
        row = self._database.row("SELECT source, imported_at FROM tasks WHERE id = ?", task_id)
        return (row["source"], row["imported_at"]) if row else ("", "")

    def groups(self, task_id: str, *, limit: int = 10) -> tuple[list[GroupRow], int]:
        """The newest groups of a task, and how many there are in all."""
        total = self._database.value("SELECT count(*) FROM groups WHERE task_id = ?", task_id)
        rows = self._database.rows(
            "SELECT g.id, g.run_id, g.task_id, '' AS question, g.domain, g.epoch, g.batch, g.attempt, g.status,"
            " g.reason, g.size, g.scored, g.errors, g.mean, g.spread FROM groups g JOIN runs r ON r.id = g.run_id"
            " WHERE g.task_id = ? ORDER BY r.number DESC, g.ordinal DESC LIMIT ?",
            *(task_id, limit),
        )
        return [GroupRow(**row) for row in rows], int(total)

    def kinds(self) -> dict[str, int]:
        """How many tasks each kind of verifier checks, the most frequent first."""
        rows = self._database.rows(
            "SELECT verifier ->> '$.kind' AS kind, sum(n) AS n FROM (SELECT verifier, count(*) AS n FROM tasks"
            " GROUP BY verifier) GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        return {row["kind"]: row["n"] for row in rows}

    def stamp(self) -> int:
        """Another number whenever tasks were added, or got an answer; 0 where there are none."""
        changed = self._database.value("SELECT count(*) FROM events WHERE kind = ?", ANSWERED)
        return self._newest() + int(changed)

    def _newest(self) -> int:
        """The number of the task that came last."""
        return int(self._database.value("SELECT coalesce(max(ordinal), 0) FROM tasks"))

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


def _filter(split: str, domain: str, kind: str, search: str) -> tuple[str, list[object]]:
    """A condition that names only what is asked for, so that indexes can be used."""
    parts, values = list[str](), list[object]()
    for column, wanted in (("split", split), ("domain", domain), ("verifier ->> '$.kind'", kind)):
        if wanted:
            parts.append(f"{column} = ?")
            values.append(wanted)
    if text := search.strip():
        parts.append("(instr(lower(question), lower(?)) > 0 OR id = ?)")
        values += [text, text]
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


def _beside(old: Task, task: Task, came_in: Container[str]) -> Literal["known", "answered", "taken"]:
    """What a task is to the one that is here under its id.

    Args:
        old: the one that is here.
        task: the other one.
        came_in: ids of tasks with recorded rollouts. They may have the domain and the metadata of these: a file that
            asks the same and has the same answer need not repeat them.
    """
    if _is(old, task):
        return "known"
    if text_key(old.question) != text_key(task.question):
        return "taken"
    if old.answer is not None and task.answer not in (None, old.answer):
        return "taken"
    if old.verifier.kind == "none" != task.verifier.kind:
        return "answered"
    same = old.verifier == task.verifier and (old.answer is not None or task.answer is None)
    return "known" if same and old.id in came_in else "taken"


def _is(old: Task, task: Task) -> bool:
    """Whether a stored task has the content of this one; its split may be another one."""
    return old.model_copy(update={"split": task.split}) == task


def _text_hash(task: Task) -> str:
    return content_hash(text_key(task.question))


def other_task(task: Task, line: int, source: str) -> SetAside:
    """A task that is kept aside because its id is taken."""
    reason = (
        f"the id {task.id!r} stands for another task in this workspace, or for this one with another answer or "
        "verifier, which stay; give this one another id"
    )
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
    """What is stored was validated when it came in: a run of 100,000 tasks is not validated again."""
    return Task.model_construct(
        id=row["id"],
        question=row["question"],
        answer=row["answer"],
        verifier=_verifier(row["verifier"]),
        domain=row["domain"],
        split=row["split"],
        metadata={} if row["metadata"] == "{}" else json.loads(row["metadata"]),
    )


@lru_cache(maxsize=1024)  # files name the same verifier in every row, and it is immutable
def _verifier(spec: str) -> VerifierSpec:
    return VerifierSpec(**json.loads(spec))
