"""A lock between processes that the operating system takes back when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file at `path`; threads and processes exclude each other alike.

    Args:
        path: the lock file; its folder must be there.
        waiting: called once when someone else holds the lock.
    """
    lock = FileLock(path, mode=0o600)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
