"""Locks of a workspace: what one process works on, no other does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import BusyError

PROBE_S = 1.0
"""Who only asks whether somebody works holds a lock for a moment: who wants to work waits so long for that."""


@contextmanager
def held(path: Path, taken: str) -> Iterator[None]:
    """Hold a lock.

    Args:
        path: of the file that stands for it.
        taken: what to say where somebody else holds it.

    Raises:
        BusyError: somebody does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=PROBE_S)
    except Timeout as e:
        raise BusyError(taken) from e
    try:
        yield
    finally:
        lock.release()
