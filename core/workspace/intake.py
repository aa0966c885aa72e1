"""What comes in: task files and recorded rollouts. Nothing that was handed in vanishes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from core.errors import InputError
from core.executor import LocalExecutor
from core.importers.splits import SHARES
from core.packs.content import kept_name
from core.ports import Progress, silent
from core.record import Record
from core.reward import RECORDED
from core.rollout import Group, Rollout, SetAside, Split, Task
from core.settings import RewardConfig, RunConfig, VerifierSpec
from core.settling import settle
from core.store import Store
from core.store.tasks import other_task
from core.verifiers import NOTHING, Outside, make_verifier

if TYPE_CHECKING:
    from core.importers.mending import Columns
    from core.importers.tasks import TaskFile
    from core.importers.winnow_jsonl import Recorded, RecordedFile
    from core.store.tasks import Against

__all__ = ["Against", "Columns", "Intake", "RolloutsImported", "TaskFile", "TasksImported"]

JUDGED_AT_ONCE = 8
"""Recorded rollouts that are verified at once."""


class TasksImported(Record):
    """What became of the rows of a task file: `rows` = added + known + duplicates + set aside."""

    source: str
    rows: int
    added: int
    known: int
    """Already in the workspace, unchanged."""
    duplicates: int
    """Repeated in the file, word for word."""
    set_aside: tuple[SetAside, ...] = ()
    moved: tuple[str, ...] = ()
    """Put into another split, because a task with the same text is in it."""
    same_text: int = 0
    """Tasks that ask the same as an earlier one of the file under another id; kept, in the same split."""
    mapping: dict[str, str] = Field(default_factory=dict)
    """Field of a task -> column that it was read from."""
    notes: tuple[str, ...] = ()
    dry_run: bool = False
    """Nothing was imported: this is what would become of the rows."""


class RolloutsImported(Record):
    """What became of the rows of a file of recorded rollouts."""

    source: str
    run_id: str | None
    rows: int
    rollouts: int
    tasks_added: int
    groups: int
    informative: int
    unscored: int
    errors: int
    moved: tuple[str, ...] = ()
    """Tasks that went to another split, because a task with the same text is in it."""
    known: bool = False
    """The same file was imported before; nothing was changed."""
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[str, ...] = ()


class Intake:
    """Importing into one workspace."""

    def __init__(self, store: Store, outside: Outside = NOTHING) -> None:
        """
        Args:
            store: of the workspace.
            outside: what verifiers of recorded rollouts may reach.
        """
        self._store = store
        self._outside = outside

    def read_tasks(
        self,
        data: bytes | Path,
        *,
        name: str = "",
        mapping: Mapping[str, str] | None = None,
        verifier: VerifierSpec | None = None,
        domain: str | None = None,
        split: Split | None = None,
        shares: tuple[float, float, float] = SHARES,
        seed: int = 0,
    ) -> TaskFile:
        """Read a task file without importing it: what would come in, what would not, and why.

        Raises:
            InputError: the file as a whole cannot be read, or the mapping names a column that it lacks.
        """
        from core.importers.tasks import read_tasks

        return read_tasks(
            data,
            name=name,
            mapping=mapping,
            verifier=verifier,
            domain=domain,
            split=split,
            shares=shares,
            seed=seed,
        )

    def columns(self, data: bytes | Path, *, name: str = "") -> Columns:
        """The columns of a task file, and which field each is read as by its usual name.

        Raises:
            InputError: the file as a whole cannot be read.
        """
        from core.importers.mending import columns_of

        return columns_of(data, name)

    def mend(self, data: bytes, file: TaskFile, *, name: str = "") -> tuple[bytes, str]:
        """The rejected rows of a file in the format they came in, to be mended and imported; and its ending."""
        from core.importers.mending import rows_again

        return rows_again(data, name, file.rejected)

    def add_tasks(
        self, file: TaskFile, source: str, actor: str, progress: Progress = silent
    ) -> TasksImported:
        """Import what `read_tasks` found, in one transaction; rows that did not fit are set aside."""
        source = kept_name(source)
        aside = _aside(file, source)
        with self._store.writing():
            self._store.tasks.set_aside(aside)
            added = self._store.tasks.add(file.tasks, file.lines, source, actor, progress)
        return _imported(
            file,
            source,
            added=added.added,
            known=added.known,
            set_aside=(*aside, *added.refused),
            moved=added.moved,
        )

    def weigh_tasks(self, file: TaskFile, source: str) -> TasksImported:
        """What `add_tasks` would make of what was read; nothing is written."""
        return would_import(file, source, self._store.tasks.against(file.tasks))

    def add_rollouts(
        self, data: bytes | Path, actor: str, *, name: str = "", form: str | None = None
    ) -> RolloutsImported:
        """Import a file of recorded rollouts as a run of its own, in one transaction.

        The same file again changes nothing. Rewards are the recorded ones; a rollout with none is verified, where
        its task can be.

        Raises:
            InputError: the file as a whole cannot be read, or holds no rollout.
        """
        from core.importers import read_rollouts

        name = name or (data.name if isinstance(data, Path) else "rollouts")
        file = read_rollouts(data, name=name, format=form)
        source = kept_name(name)
        aside = [
            SetAside(kind="rollout", source=source, line=r.line, reason=r.reason, raw=r.raw)
            for r in file.rejected
        ]
        if not file.rollouts:
            with self._store.writing():
                self._store.tasks.set_aside(aside)
            first = f" The first: line {aside[0].line}: {aside[0].reason}." if aside else ""
            raise InputError(f"{source} holds no rollout that could be imported.{first}")
        return self._save(file, source, aside, actor)

    def _save(self, file: RecordedFile, source: str, aside: list[SetAside], actor: str) -> RolloutsImported:
        if there := self._store.runs.by_request(file.content_hash):
            return self._report(source, file, there.id, 0, (), aside, known=True)
        rollouts = asyncio.run(
            _judged(file.rollouts, self._outside)
        )  # may take long: before the write lock is held
        groups = _grouped(rollouts)
        with self._store.writing():
            if there := self._store.runs.by_request(file.content_hash):
                return self._report(source, file, there.id, 0, (), aside, known=True)
            self._store.tasks.set_aside(aside)
            tasks = list({t.id: t for t, _, _ in groups}.values())
            added = self._store.tasks.add(tasks, [0] * len(tasks), source, actor)
            if added.refused:
                raise InputError(f"{source}: {added.refused[0].reason}.")
            models = sorted({model for _, model, _ in groups})
            run_id = self._store.runs.create(
                RunConfig(),
                [task for task, _, _ in groups],
                [0] * len(groups),
                request=file.content_hash,
                kind="recorded",
                library_version=0,
                model=", ".join(models),
                note=source,
                actor=actor,
            )
            waiting = self._store.groups.waiting(run_id)
            for place, (task, _, recorded) in zip(waiting, groups, strict=True):
                self._store.groups.save(_group(place.id, run_id, task, recorded))
            self._store.runs.set_status(run_id, "done", actor)
        return self._report(source, file, run_id, added.added, added.moved, aside)

    def _report(
        self,
        source: str,
        file: RecordedFile,
        run_id: str,
        tasks_added: int,
        moved: tuple[str, ...],
        aside: list[SetAside],
        known: bool = False,
    ) -> RolloutsImported:
        tally = self._store.runs.get(run_id).tally
        errors = sum(r.error is not None for r in file.rollouts)
        scored = len(self._store.groups.rewards(run_id))
        return RolloutsImported(
            source=source,
            run_id=run_id,
            rows=len(file.rollouts) + len(file.rejected),
            rollouts=len(file.rollouts),
            tasks_added=tasks_added,
            groups=tally.total,
            informative=tally.informative,
            unscored=len(file.rollouts) - errors - scored,
            errors=errors,
            known=known,
            set_aside=tuple(aside),
            moved=moved,
            notes=file.notes,
        )


def would_import(file: TaskFile, source: str, against: Against | None = None) -> TasksImported:
    """What importing a file would make of its rows; without `against` into a workspace that has no tasks."""
    source = kept_name(source)
    known, taken = (against.known, against.taken) if against else (frozenset[str](), frozenset[str]())
    refused = [
        other_task(task, line, source)
        for task, line in zip(file.tasks, file.lines, strict=True)
        if task.id in taken
    ]
    return _imported(
        file,
        source,
        added=len(file.tasks) - len(known) - len(taken),
        known=len(known),
        set_aside=(*_aside(file, source), *refused),
        moved=tuple(against.moved) if against else (),
        dry_run=True,
    )


def _aside(file: TaskFile, source: str) -> list[SetAside]:
    return [
        SetAside(kind="task", source=source, line=r.line, reason=r.reason, raw=r.raw) for r in file.rejected
    ]


def _imported(file: TaskFile, source: str, **became: Any) -> TasksImported:
    return TasksImported(
        source=source,
        rows=file.rows,
        duplicates=file.rows - len(file.tasks) - len(file.rejected),
        same_text=len(file.duplicate_texts),
        mapping=file.mapping,
        notes=file.notes,
        **became,
    )


async def _judged(rollouts: Sequence[Recorded], outside: Outside) -> list[Recorded]:
    """The rollouts in their order; those that came without reward and scores are verified, where they can be."""

    async def judge(numbered: tuple[int, Recorded]) -> tuple[int, Recorded]:
        place, recorded = numbered
        if recorded.error is not None or recorded.reward is not None or recorded.scores:
            return numbered
        task = recorded.task
        score = await make_verifier(task.verifier, outside).score(task, recorded.trajectory)
        return place, recorded.model_copy(update={"scores": {task.verifier.kind: score}})

    stream = LocalExecutor().stream(judge, enumerate(rollouts), at_once=JUDGED_AT_ONCE)
    return [recorded for _, recorded in sorted([one async for one in stream], key=lambda one: one[0])]


def _grouped(rollouts: Sequence[Recorded]) -> list[tuple[Task, str, list[Recorded]]]:
    """Rollouts of one task and one model belong together, in the order in which they came."""
    groups: dict[tuple[str, str], tuple[Task, str, list[Recorded]]] = {}
    for recorded in rollouts:
        key = (recorded.task.id, recorded.model)
        groups.setdefault(key, (recorded.task, recorded.model, []))[2].append(recorded)
    return list(groups.values())


def _group(group_id: str, run_id: str, task: Task, recorded: list[Recorded]) -> Group:
    rollouts = tuple(_rollout(group_id, r) for r in recorded)
    return settle(Group(id=group_id, run_id=run_id, task_id=task.id, rollouts=rollouts), RewardConfig())


def _rollout(group_id: str, recorded: Recorded) -> Rollout:
    return Rollout(
        id=f"{group_id}-{recorded.replicate}",
        group_id=group_id,
        task_id=recorded.task.id,
        replicate=recorded.replicate,
        trajectory=recorded.trajectory,
        scores=recorded.scores,
        components={} if recorded.reward is None else {RECORDED: recorded.reward},
        usage=recorded.usage,
        error=recorded.error,
        model=recorded.model,
        duration_s=recorded.duration_s,
    )
