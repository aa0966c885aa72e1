"""What comes in: task files and recorded rollouts. Nothing that was handed in vanishes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from core.importers.report import FileRead, ImportOptions, ImportReport, RewardSaid
from core.importers.splits import SHARES
from core.packs.content import kept_name
from core.ports import Embedder, Progress, silent
from core.record import Record
from core.rollout import SetAside, Split
from core.settings import VerifierSpec
from core.store import Store
from core.store.tasks import Against, other_task
from core.verifiers import Outside

if TYPE_CHECKING:
    from core.importers.brings import Brought
    from core.importers.mending import Columns
    from core.importers.tasks import TaskFile

__all__ = [
    "Against",
    "Brought",
    "Columns",
    "FileRead",
    "ImportOptions",
    "ImportReport",
    "Intake",
    "RewardSaid",
    "TaskFile",
    "TasksImported",
]


class TasksImported(Record):
    """What became of the rows of a task file: `rows` = added + known + answered + duplicates + set aside."""

    source: str
    rows: int
    added: int
    known: int
    """Already in the workspace, unchanged."""
    duplicates: int
    """Repeated in the file, word for word."""
    answered: tuple[str, ...] = ()
    """Ids of tasks that were here without a verifier, and have that of their row now, and its answer. Rewards that
    their rollouts have stay as they are."""
    splits: dict[Split, int] = Field(default_factory=dict)
    """Split -> tasks that were added."""
    stay: dict[Split, int] = Field(default_factory=dict)
    """Split -> tasks that were here in it, and stay, though the file or an option says another one."""
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


class Intake:
    """Importing into one workspace."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        holding: Callable[[str], AbstractContextManager[None]],
        outside: Outside,
        embedder: Callable[[], Embedder],
    ) -> None:
        """
        Args:
            store: of the workspace.
            folder: of the workspace: imports that are under way lie in it.
            holding: holds a run, so that nobody else works on it.
            outside: what verifiers of recorded rollouts may reach.
            embedder: makes the one of the epistemic reward, when it is needed.
        """
        self._store, self._folder, self._holding = store, folder, holding
        self._outside = outside
        self._embedder = embedder

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

        return self.as_here(
            read_tasks(
                data,
                name=name,
                mapping=mapping,
                verifier=verifier,
                domain=domain,
                split=split,
                shares=shares,
                seed=seed,
            )
        )

    def as_here(self, file: TaskFile) -> TaskFile:
        """What was read, where a row without an id that asks what a task with recorded rollouts asks is that task."""
        from core.importers.tasks import made_id

        unnamed = [t for t in file.tasks if t.id == made_id(t.question, t.answer, t.domain)]
        own, taken = self._store.tasks.meant(unnamed), {task.id for task in file.tasks}
        tasks = list(file.tasks)
        for place, task in enumerate(tasks):
            if (found := own.get(task.id)) is not None and found not in taken:
                tasks[place] = task.model_copy(update={"id": found})
                taken.add(found)
        return file.model_copy(update={"tasks": tuple(tasks)})

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
            answered=added.answered,
            splits=added.splits,
            stay=added.stay,
        )

    def weigh_tasks(self, file: TaskFile, source: str) -> TasksImported:
        """What `add_tasks` would make of what was read; nothing is written."""
        return would_import(file, source, self._store.tasks.against(file.tasks))

    def formats(self) -> list[Brought]:
        """The formats of recorded rollouts, in the order in which a file is tried for them, and what each brings."""
        from core.importers.brings import brought

        return brought()

    def look(
        self,
        paths: Sequence[Path | str],
        options: ImportOptions,
        progress: Progress = silent,
    ) -> ImportReport:
        """What importing recorded rollouts would bring; nothing is written.

        Raises:
            InputError: there is no such file, or none that can be read.
        """
        from core.workspace.bringing import look

        return look(self._store, paths, options, progress)

    def add_rollouts(
        self,
        paths: Sequence[Path | str],
        options: ImportOptions,
        actor: str,
        progress: Progress = silent,
        *,
        source: str = "",
    ) -> ImportReport:
        """Import recorded rollouts: attempts that are new go into their groups, or into those of a new run.

        The same files again change nothing; files that grew add what is new. An import that was interrupted, at
        whatever moment, goes on when it is asked for again.

        Args:
            paths: files, folders, patterns, archives.
            options: how they are read.
            actor: who imports them.
            progress: told of bytes read and of groups saved.
            source: what to call them; without it, by their names.

        Raises:
            InputError: there is no such file, none that can be read, or none that holds a rollout.
            BusyError: another process imports the same, or works on a run that gets something.
        """
        from core.workspace.bringing import Asked, Bringing, name_of
        from core.workspace.resettling import Resettling

        resettling = Resettling(self._store, self._embedder)
        bringing = Bringing(self._store, self._folder, self._outside, self._holding, resettling)
        called = kept_name(source) if source else name_of(paths)
        return bringing.bring(Asked(paths, options, actor, progress, called))


def would_import(file: TaskFile, source: str, against: Against | None = None) -> TasksImported:
    """What importing a file would make of its rows; without `against` into a workspace that has no tasks."""
    source = kept_name(source)
    against = against or Against(frozenset(), frozenset(), {}, {}, frozenset(), {})
    here = against.known | against.taken | against.answered
    refused = [
        other_task(task, line, source)
        for task, line in zip(file.tasks, file.lines, strict=True)
        if task.id in against.taken
    ]
    return _imported(
        file,
        source,
        added=len(file.tasks) - len(here),
        known=len(against.known),
        set_aside=(*_aside(file, source), *refused),
        moved=tuple(against.moved),
        answered=tuple(task.id for task in file.tasks if task.id in against.answered),
        splits=Counter(against.moved.get(t.id, t.split) for t in file.tasks if t.id not in here),
        stay=Counter(against.stay.values()),
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
