"""Imports that were interrupted: what they had read lies in the workspace until somebody goes on with them."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

IMPORTS = "imports"
"""Folder of a workspace for imports that are under way, and for files that are kept."""
FORGOTTEN_S = 30 * 24 * 3600
"""After so long nobody goes on with an import that was interrupted."""


def unfinished(folder: Path) -> list[Path]:
    """The spools of imports that are under way or were interrupted."""
    return sorted(folder.glob(f"{IMPORTS}/*/spool.db"))


def import_locks(folder: Path) -> list[Path]:
    """The locks of imports: who holds one imports now."""
    return sorted((folder / IMPORTS).glob("*.lock"))


def drop(folder: Path) -> int:
    """Take away what interrupted imports had read, so that they begin anew; gives their number.

    Nobody may import meanwhile (`core.workspace.quiet`).
    """
    spools = unfinished(folder)
    for spool in spools:
        shutil.rmtree(spool.parent)
    return len(spools)


def forget_old(folder: Path) -> None:
    """Take away imports that were begun long ago, and that nobody went on with."""
    for spool in unfinished(folder):
        try:
            changed = spool.stat().st_mtime
        except FileNotFoundError:  # another import has ended meanwhile
            continue
        if time.time() - changed > FORGOTTEN_S:
            shutil.rmtree(spool.parent, ignore_errors=True)
