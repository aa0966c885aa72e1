"""Files of an import that are kept in the workspace as they came, each named by its content."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError
from core.importers.report import ImportOptions
from core.packs.content import kept_name
from core.store.spool import Spool

RAW = "raw"
"""Folder for them, beside the imports that are under way."""


def raw_files(spool: Spool, options: ImportOptions) -> Iterator[Path]:
    """The files that an import read: those with attempts, their neighbours, and the file of rewards."""
    for row in spool.rows(
        "SELECT path FROM files WHERE became = 'read' UNION SELECT path FROM neighbours ORDER BY path"
    ):
        yield Path(row["path"])
    if options.rewards is not None:
        yield options.rewards


def size_of(spool: Spool, options: ImportOptions) -> int:
    """Bytes of all these files."""
    return sum(path.stat().st_size for path in raw_files(spool, options) if path.is_file())


def keep(spool: Spool, options: ImportOptions, folder: Path) -> int:
    """Copy the files into a folder; gives the bytes of all of them. What is there already is not copied again.

    Raises:
        InputError: a file cannot be read any more, or the folder cannot be written.
    """
    kept = folder / RAW
    size = 0
    for path in raw_files(spool, options):
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            kept.mkdir(parents=True, exist_ok=True)
            _copy(path, kept / f"{digest[:16]}-{kept_name(path.name)}")
            size += path.stat().st_size
        except OSError as e:
            raise InputError(
                f"{path.name!r} cannot be kept in the workspace: {e.strerror or e}. Mend that, or leave out --keep-raw."
            ) from e
    return size


def _copy(path: Path, target: Path) -> None:
    """Never is half a file to be found under the name of the whole one."""
    if not target.exists():
        partial = target.with_name(f"{target.name}.partial")
        try:
            shutil.copyfile(path, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
