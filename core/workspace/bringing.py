"""One import of recorded rollouts from its files to its report: looked at first, or brought in."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from core.errors import BusyError, InputError
from core.importers.choosing import choose
from core.importers.fates import Nowhere
from core.importers.gathering import Gathering
from core.importers.report import ImportOptions, ImportReport, RewardSaid
from core.importers.rewards_file import read_rewards
from core.importers.source import printable
from core.importers.telling import files_of_aside, set_aside, told
from core.packs.content import kept_name
from core.ports import Progress
from core.record import content_hash
from core.store import Store
from core.store.spool import VERSION, Spool
from core.verifiers import Outside
from core.workspace.held_out import splits_told
from core.workspace.holding import held
from core.workspace.placing import Placing
from core.workspace.raw import keep, size_of
from core.workspace.recording import Into, Recording, saved_run
from core.workspace.resettling import Resettling
from core.workspace.unfinished import IMPORTS, forget_old

PATIENCE = 60
"""How often a run that somebody works on is tried again, a second each."""
KEPT_ASIDE = 1_000
"""Rows set aside that are written at once."""


def look(
    store: Store | None, paths: Sequence[Path | str], options: ImportOptions, progress: Progress
) -> ImportReport:
    """What an import would bring; nothing is written.

    Args:
        store: of the workspace; None where there is none yet.
        paths: files, folders, patterns, archives.
        options: how they are read.
        progress: told of bytes read.

    Raises:
        InputError: there is no such file, or none that can be read.
    """
    asked, spool = Asked(paths, options, "", progress, name_of(paths)), Spool()
    with tempfile.TemporaryDirectory(prefix="winnow-") as scratch:
        try:
            here = store.recorded if store is not None else Nowhere()
            Gathering(spool, options, here, progress).take(paths, Path(scratch))
            said = asked.choose(spool)
            _check(spool, asked.source)
            with _store(store) as known:
                placing = Placing(known, spool)
                placing.name_tasks()
                regraded = placing.preview(options)
                run_id = placing.run_of_known()
                splits = splits_told(spool, known, options)
            kept = size_of(spool, options) if options.keep_raw else 0
            return told(
                *(spool, options, said),
                source=asked.source,
                dry_run=True,
                run_id=run_id,
                kept_bytes=kept,
                regraded=regraded,
                splits=splits,
            )
        finally:
            spool.close()


@contextmanager
def _store(store: Store | None) -> Iterator[Store]:
    """The workspace's store, or an empty one that is gone afterwards."""
    if store is not None:
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        yield Store(Path(folder) / "none.db")


@dataclass(frozen=True)
class Asked:
    """What an import was asked for."""

    paths: Sequence[Path | str]
    options: ImportOptions
    actor: str
    progress: Progress
    source: str
    """What to call the files."""

    @property
    def request(self) -> str:
        """What the same import has in common with itself when it is asked for again."""
        options = self.options.model_dump(mode="json")
        if (side := self.options.rewards) is not None and side.is_file():
            options["rewards"] = hashlib.sha256(side.read_bytes()).hexdigest()
        return content_hash(
            ["recorded", VERSION, [str(Path(p).expanduser().resolve()) for p in self.paths], options]
        )

    def choose(self, spool: Spool) -> list[RewardSaid]:
        """Decide which score is the reward."""
        return choose(
            spool, self.options, read_rewards(self.options.rewards) if self.options.rewards else None
        )


@dataclass
class Bringing:
    """Brings recorded rollouts into a workspace."""

    store: Store
    folder: Path
    """Of the workspace."""
    outside: Outside
    holding: Callable[[str], AbstractContextManager[None]]
    """Holds a run."""
    resettling: Resettling

    def bring(self, asked: Asked) -> ImportReport:
        """See `Intake.add_rollouts`."""
        request = asked.request
        place = self.folder / IMPORTS / request[:20]
        with held(
            place.with_suffix(".lock"), f"Another process imports {asked.source} just now; wait for it."
        ):
            try:
                with closing(Spool(place / "spool.db")) as spool:
                    report = self._through(spool, asked, request, place / "unpacked")
            except InputError:  # what is wrong with the files will be so the next time: nothing to go on with
                shutil.rmtree(place, ignore_errors=True)
                raise
            shutil.rmtree(place, ignore_errors=True)
            forget_old(self.folder)
        return report

    def _through(self, spool: Spool, asked: Asked, request: str, unpacked: Path) -> ImportReport:
        Gathering(spool, asked.options, self.store.recorded, asked.progress).take(asked.paths, unpacked)
        said = asked.choose(spool)
        self._keep_aside(spool)
        _check(spool, asked.source)
        kept = keep(spool, asked.options, self.folder / IMPORTS) if asked.options.keep_raw else 0
        report = self._record(spool, asked, request, said)
        return report.model_copy(update={"kept_bytes": kept})

    def _record(self, spool: Spool, asked: Asked, request: str, said: Sequence[RewardSaid]) -> ImportReport:
        placing = Placing(self.store, spool)
        with ExitStack() as held:
            recording = Recording(
                *(self.store, spool, asked.options, self.outside, self.resettling),
                holding=lambda run_id: self._hold(run_id, held, asked.progress),
            )
            run_id = self._run(placing, recording, request)
            placing.name_tasks()
            if spool.count_due(asked.options.says_reward):
                run_id = self._save(placing, recording, run_id, asked, request)
            report = told(
                spool,
                asked.options,
                said,
                source=asked.source,
                run_id=run_id,
                regraded=recording.regraded,
                moved=tuple(recording.moved),
                splits=splits_told(spool, self.store, asked.options),
            )
            if run_id:
                self._finish(run_id, report, asked.actor)
        return report

    def _hold(self, run_id: str, held: ExitStack, progress: Progress) -> None:
        """Hold a run; who works on it is waited for, since another import is done soon."""
        for waited in range(PATIENCE):
            with suppress(BusyError):
                held.enter_context(self.holding(run_id))
                return
            progress(f"waiting for who works on {run_id}", waited, PATIENCE)
        held.enter_context(self.holding(run_id))

    def _run(self, placing: Placing, recording: Recording, request: str) -> str | None:
        """The run that new groups go into: the one that was begun, or that of known attempts; None = a new one.

        It is held, and so are all others that get something: from then on it stands what is known.
        """
        begun = self.store.runs.by_request(request)
        own = begun.id if begun is not None and begun.status == "running" else None
        recording.hold(placing.runs_of_due(recording.regrades) | ({own} if own else set()))
        run_id = own or placing.run_of_known()
        recording.hold([run_id] if run_id else [])
        return run_id

    def _save(
        self, placing: Placing, recording: Recording, run_id: str | None, asked: Asked, request: str
    ) -> str | None:
        """Save what is due; gives the run that holds it."""

        def make() -> str:
            return saved_run(self.store, request, asked.source, placing.models(), asked.actor)

        into = Into(run_id, asked.source, asked.actor, make)
        if run_id and recording.spool.rows("SELECT 1 FROM attempts WHERE fate = 'new' LIMIT 1"):
            self.store.runs.set_status(run_id, "running", asked.actor)
        try:
            recording.save(into, asked.progress)
        except InputError:  # nothing goes on with it: what was saved stands, and the run waits for nobody
            if into.run_id:
                self.store.runs.set_status(into.run_id, "done", asked.actor)
            raise
        return into.run_id or placing.run_of_known()

    def _finish(self, run_id: str, report: ImportReport, actor: str) -> None:
        if report.nothing_new and self.store.runs.brief(run_id).status != "running":
            return
        counts = {
            "attempts": report.added,
            "groups": report.groups,
            "regraded": report.regraded,
            "went_on": report.went_on,
        }
        with self.store.writing():
            self.store.events.append(actor, "rollouts.imported", run_id, source=report.source, **counts)
            self.store.runs.set_status(run_id, "done", actor)

    def _keep_aside(self, spool: Spool) -> None:
        """Keep what could not be read; not again where the same file came before.

        Its text may have been masked or redacted since, and must not come back.
        """
        files = [row["sha256"] for row in spool.rows("SELECT DISTINCT sha256 FROM files")]
        known, offset = self.store.tasks.aside_of(files), 0
        while rows := set_aside(spool, KEPT_ASIDE, offset)[0]:
            pairs = zip(rows, files_of_aside(spool, KEPT_ASIDE, offset), strict=True)
            new = [(row, file) for row, file in pairs if (file, row.line, row.reason) not in known]
            named = [row.model_copy(update={"source": kept_name(row.source)}) for row, _ in new]
            self.store.tasks.set_aside(named, [file for _, file in new])
            offset += len(rows)


def name_of(paths: Sequence[Path | str]) -> str:
    """What to call the files of an import.

    >>> name_of([Path("logs/a.jsonl"), Path("b.jsonl")])
    'a.jsonl and 1 more'
    """
    if not paths:
        raise InputError("Name at least one file or folder.")
    first = Path(paths[0])
    name = kept_name(printable(first.name or str(first.resolve().name) or str(first)))
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"


def _check(spool: Spool, source: str) -> None:
    """There must be something to import.

    Raises:
        InputError: there is nothing, with the first reason.
    """
    if spool.rows("SELECT 1 FROM attempts LIMIT 1"):
        return
    unread = spool.rows(
        "SELECT name, reason FROM files WHERE reason <> '' ORDER BY became = 'skipped', number LIMIT 1"
    )
    first = set_aside(spool, 1)[0]
    why = ""
    if first:
        at = f"line {first[0].line}: " if first[0].line else ""
        why = f" The first: {at}{first[0].reason}."
    elif unread:
        why = f" {unread[0]['name']}: {unread[0]['reason']}."
    elif remark := spool.rows("SELECT text FROM remarks LIMIT 1"):
        why = f" {remark[0]['text']}"
    raise InputError(f"{source} holds no rollout that could be imported.{why}")
