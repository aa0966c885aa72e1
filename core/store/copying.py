"""Copies of a database file: consistent, checked, complete under their name or not there, never over another file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from core.errors import InputError
from core.store.integrity import damage

JOURNALS = ("-wal", "-shm", "-journal")


def copy_database(source: Path, target: Path) -> None:
    """A consistent copy as one file without a journal, while others write to the source.

    Raises:
        InputError: the source is damaged, or the copy cannot be written.
        FileExistsError: there is a target; nothing is ever written over.
    """
    partial = target.with_name(f"{target.name}.partial")
    remove(partial)
    try:
        with closing(sqlite3.connect(source)) as there, closing(sqlite3.connect(partial)) as copy:
            there.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            if found := damage(copy):
                raise InputError(f"{source} is damaged ({found[0]}): `winnow doctor` says more.")
        appear(partial, target)
    except sqlite3.Error as e:
        raise InputError(f"{source} cannot be copied ({e}).") from e
    finally:
        remove(partial)


def appear(partial: Path, target: Path) -> None:
    """Give a finished file its name, complete or not at all, and never in the place of another.

    Raises:
        FileExistsError: the name is taken.
    """
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError as e:  # a file system without hard links
        if target.exists():
            raise FileExistsError(str(target)) from e
        partial.rename(target)
    remove(partial)
    sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a database file and the journals beside it, if they are there."""
    for name in (path.name, *(path.name + journal for journal in JOURNALS)):
        path.with_name(name).unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not everywhere can a folder be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
