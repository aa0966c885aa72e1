"""A workspace where nobody works: what backups are put into, and what texts are removed from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from core import worker
from core.errors import BusyError
from core.workspace.unfinished import IMPORTS, import_locks

HELD_MOST = 200
"""Locks that are held all along. Of further ones it is only seen to that nobody has them: open files are few."""
SCRATCH = ".scratch-"
"""How folders for what is on its way are called; a killed process leaves one, which `winnow doctor` names."""


@contextmanager
def quiet(folder: Path) -> Iterator[None]:
    """Keep workers, runs and imports out of a workspace.

    Raises:
        BusyError: one is at work.
    """
    with ExitStack() as held:
        if not held.enter_context(worker.seat(folder)):
            raise BusyError(
                f"A worker is at work on {folder}: pause it (`winnow jobs pause`), or wait for its end."
            )
        locks = [path for path in sorted((folder / "locks").glob("*.lock")) if path.name != "worker.lock"]
        for number, path in enumerate([*locks, *import_locks(folder)]):
            lock = FileLock(path)
            try:
                lock.acquire(blocking=False)
            except Timeout as e:
                what = "an import into" if path.parent.name == IMPORTS else f"{path.stem} of"
                raise BusyError(f"A process works on {what} {folder}; wait for its end, or stop it.") from e
            if number < HELD_MOST:
                held.callback(lock.release)
            else:
                lock.release()
        yield


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder inside the workspace that is gone afterwards: what is secret never leaves it."""
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder, ignore_cleanup_errors=True) as name:
        yield Path(name)
