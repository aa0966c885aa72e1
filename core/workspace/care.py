"""Backups of a workspace, and putting one back. What was there is kept beside it, always."""

from __future__ import annotations

import itertools
import shutil
from contextlib import suppress
from pathlib import Path

from core.errors import InputError
from core.record import Record
from core.store.backup import Manifest, prepare, put_in_place, read_backup, write_backup
from core.store.copying import JOURNALS
from core.store.events import Clock
from core.store.lasting import lasting
from core.store.store import utc_now
from core.workspace.quiet import quiet, scratch
from core.workspace.unfinished import drop
from core.workspace.workspace import DATABASE

BACKUPS = "backups"
"""Folder of a workspace for its backups, where no other place is named."""


class BackedUp(Record):
    """A backup that was made."""

    path: Path
    size: int
    """Bytes of the file."""
    manifest: Manifest


class Restored(Record):
    """A backup that was put in place."""

    manifest: Manifest
    kept: Path | None
    """What was there before: a backup, or a folder with its files where they could not be read; None = nothing."""
    back: str
    """The command that goes back."""
    redactions: tuple[int, ...] = ()
    """Made after the backup: what they took out may be there again."""
    held: tuple[int, ...] = ()
    """Redactions whose text may be in what was there, and so in `kept`."""
    versions: tuple[int, ...] = ()
    """Numbers of versions that were given after the backup, and read as its newest one."""
    compared: bool = True
    """Whether what was there could be read: else nobody knows which redactions and ids there were."""


class Care:
    """Copies of one workspace. It need not be one that can be opened."""

    def __init__(self, folder: Path, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.database = folder / DATABASE
        self.clock = clock

    def backup(self, target: Path | None, actor: str) -> BackedUp:
        """Copy the workspace into one file, consistently, while others use it.

        Args:
            target: the file, or a folder for it; None is `backups/` in the workspace.
            actor: who wants it.

        Raises:
            InputError: there is no workspace, it is damaged, or the file is there or cannot be written.
        """
        self.check_there()
        at = self.clock()
        path = target or self.folder / BACKUPS
        try:
            if target is None:
                path.mkdir(exist_ok=True)
            path = self._free(path, f"winnow-{_compact(at)}", ".zip") if path.is_dir() else path
            with scratch(self.folder) as room:
                manifest = write_backup(self.database, path, room, made_at=at, made_by=actor)
        except OSError as e:
            raise InputError(f"{path} cannot be written: {e.strerror or e}.") from e
        return BackedUp(path=path, size=path.stat().st_size, manifest=manifest)

    def restore(self, file: Path, actor: str) -> Restored:
        """Put a backup, or the copy from before a migration, in the place of the workspace.

        Whoever has the workspace open goes on with the new content; a kill leaves the old or the new one.

        Raises:
            InputError: the file is no sound workspace, or of a newer Winnow; nothing was changed.
            BusyError: a worker, a run or an import is at work.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with quiet(self.folder), scratch(self.folder) as room:
                new = room / "new.db"
                manifest = read_backup(file, new)
                kept = self._keep(actor)
                before = lasting(self.database) if kept else None
                drop(self.folder)  # what an import had saved is not there any more
                carried = prepare(new, file, self.clock, actor, kept.name if kept else "", before)
                put_in_place(new, self.database)
        except OSError as e:
            raise InputError(f"{self.folder} cannot be written: {e.strerror or e}.") from e
        return Restored(
            manifest=manifest,
            kept=kept,
            back=self._back(kept),
            redactions=carried.redactions,
            held=before.unproved if before else (),
            versions=carried.versions,
            compared=before is not None or kept is None,
        )

    def check_there(self) -> None:
        """Refuse a folder that is no workspace, lest one is made there.

        Raises:
            InputError: it is none.
        """
        if not self.database.exists():
            raise InputError(f"There is no workspace in {self.folder}; name one with --workspace.")

    def _keep(self, actor: str) -> Path | None:
        if not self.database.exists():
            return None
        folder, stem = self.folder / BACKUPS, f"before-restore-{_compact(self.clock())}"
        folder.mkdir(exist_ok=True)
        with suppress(InputError):
            return self.backup(self._free(folder, stem, ".zip"), actor).path
        kept = self._free(folder, stem, "")  # it is damaged: its files, as they are
        kept.mkdir()
        for name in (DATABASE, *(DATABASE + journal for journal in JOURNALS)):
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, kept / name)
        return kept

    def _back(self, kept: Path | None) -> str:
        if kept is None:
            return "Nothing was there before."
        if kept.is_dir():
            return f"What was there could not be read; its files are in {kept}."
        return f"winnow restore {kept} --workspace {self.folder}"

    def _free(self, folder: Path, stem: str, suffix: str) -> Path:
        names = (folder / f"{stem}{f'-{n}' if n > 1 else ''}{suffix}" for n in itertools.count(1))
        return next(path for path in names if not path.exists())


def _compact(at: str) -> str:
    """`20261129T183000Z`, of `2026-11-29T18:30:00Z`."""
    return at.replace("-", "").replace(":", "")
