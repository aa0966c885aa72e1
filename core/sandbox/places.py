"""What a program may read besides its folder, and how its folder is watched and taken away."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

MAX_FILES = 2000
"""Files and folders that a program's folder may hold."""
FOLDER_FILES = 4
"""The folder may hold as much as so many files of the largest size."""


def readable() -> list[str]:
    """Python's own library and installed packages, and the system's shared libraries and time zones."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {str(Path(sys.base_prefix) / "lib")}
    system = (
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/share/zoneinfo",
        "/etc/localtime",
        "/etc/ld.so.cache",
    )
    return sorted({os.path.realpath(path) for path in (*paths, *system) if os.path.exists(path)})


def overfull(folder: str, largest_file: int) -> bool:
    """Whether there is too much in a folder; looks at `MAX_FILES` entries at most."""
    found, total, pending = 0, 0, [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    found += 1
                    if found > MAX_FILES:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue  # it went while we looked
        except OSError:  # a path that is too long, or a folder that its maker closed
            found += MAX_FILES // 10
    return total > FOLDER_FILES * largest_file


def take_away(folder: str) -> None:
    """Remove a folder, however deep and whatever its modes; `shutil.rmtree` gives up on both."""
    number = 0
    while inner := _emptied_of_files(folder):
        for path in inner:
            os.chmod(path, 0o700)
            for deeper in _emptied_of_files(path):
                os.chmod(deeper, 0o700)  # a folder that moves must be writable itself
                number += 1
                os.rename(deeper, os.path.join(folder, f".winnow-{number}"))
            os.rmdir(path)
    os.rmdir(folder)


def _emptied_of_files(folder: str) -> list[str]:
    """The folders in a folder, after everything else in it was removed."""
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            else:
                os.unlink(entry.path)
    return inner
