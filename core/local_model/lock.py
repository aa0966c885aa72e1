"""A lock between processes that the operating system takes back when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_held: set[int] = set()


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file at `path`; threads and processes exclude each other alike.

    The file is never removed and its content means nothing, so a leftover one cannot block anybody.

    Args:
        path: the lock file; its folder must be there.
        waiting: called once when someone else holds the lock.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if not _take(handle, wait=False):
            waiting()
            _take(handle, wait=True)
        _held.add(handle)
        try:
            yield
        finally:
            if handle in _held:
                _held.discard(handle)
                _give(handle)
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int, *, wait: bool) -> bool:
        while True:
            try:
                os.lseek(handle, 0, os.SEEK_SET)
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
                time.sleep(0.05)  # msvcrt's own waiting gives up after ten seconds
            else:
                return True

    def _give(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(handle: int, *, wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _give(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

    def _let_go_in_fork() -> None:
        # A forked process shares the open file: it would keep the lock after its parent was killed.
        for handle in list(_held):
            _held.discard(handle)
            os.close(handle)

    os.register_at_fork(after_in_child=_let_go_in_fork)
