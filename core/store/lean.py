"""sqlite-utils, imported without pandas and numpy: it loads them, where they are installed, only to know their types.

Nobody hands it values of these here, and they would be two thirds of a second of every command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

NOT_NEEDED = ("pandas", "numpy")


@contextmanager
def _absent(names: tuple[str, ...]) -> Iterator[None]:
    """Let an import of these fail, unless they are loaded already."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's own way to say "not to be found"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with _absent(NOT_NEEDED):
    from sqlite_utils import Database as SqliteUtils

__all__ = ["SqliteUtils"]
