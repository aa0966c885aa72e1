"""The folder that this process lays uploads down in. What was uploaded is not masked yet, so nothing of it may stay.

1. It is removed when the server is stopped (Ctrl-C, SIGTERM), and at the latest when the process ends.
2. A process that is killed removes nothing. So each holds a lock in its folder for as long as it lives, and a server
   that starts removes folders of the same user whose lock nobody holds; those without a lock are not ours.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

PREFIX = "winnow-upload-"
LOCK = ".lock"

_own: list[tuple[Path, FileLock]] = []
_making = threading.Lock()


def folder() -> Path:
    """That of this process; made when it is first asked for."""
    with _making:
        while not (_own and _own[0][0].is_dir()):
            _own.clear()
            _own.extend(_made())
        return _own[0][0]


def _made() -> list[tuple[Path, FileLock]]:
    """A folder with its lock, unless another process took it for a left one before it was locked."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = FileLock(path / LOCK, thread_local=False)
    with suppress(Timeout, OSError):
        lock.acquire(timeout=0)
        if (path / LOCK).exists():
            return [(path, lock)]
    return []


@atexit.register
def clear() -> None:
    """Remove it with all that is in it."""
    with _making:
        for path, lock in _own:
            shutil.rmtree(path, ignore_errors=True)
            lock.release()
        _own.clear()


def sweep() -> None:
    """Remove what processes left that are gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, Timeout):
            if _ours(path) and (path / LOCK).exists():
                with FileLock(path / LOCK, thread_local=False).acquire(timeout=0):
                    shutil.rmtree(path, ignore_errors=True)


def _ours(path: Path) -> bool:
    there = path.lstat()
    return stat.S_ISDIR(there.st_mode) and (not hasattr(os, "getuid") or there.st_uid == os.getuid())
