"""Scratch: the folder of one rollout. Nothing that an agent names leads out of it, and it is gone afterwards."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from core.agent.tool import ToolError, clean

MAX_FILE = 1_000_000
"""Bytes of one file that is read or written by a file tool."""

MAX_FOLDER = 16_000_000
"""Bytes that the file tools may fill a folder with."""

MAX_ENTRIES = 500
"""Files that are listed or searched, and that the file tools may make."""

_DEPTH = 16
"""Folders within one another."""

_BY_HANDLE = {os.open, os.mkdir} <= os.supports_dir_fd
"""Whether a path can be opened step by step, so that no link is followed even if it is put there meanwhile."""


@dataclass(frozen=True)
class Entry:
    """A file below the folder."""

    path: str
    """Relative, with `/`."""
    size: int
    link: bool = False
    """A symbolic link, which is shown but not followed."""


class Scratch:
    """A folder that is made when it is entered, and removed when the last user is done with it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="winnow-agent-"))
        self._users = 1
        self._lock = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[Path]:
        """Keep the folder while a program works in it, even if the rollout is given up meanwhile."""
        with self._lock:
            self._users += 1
        try:
            yield self.root
        finally:
            self.close()

    def close(self) -> None:
        """Done with it."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            for folder, inner, _ in os.walk(self.root):  # top down: each is opened up before it is entered
                for name in inner:
                    if not os.path.islink(whole := os.path.join(folder, name)):
                        os.chmod(whole, 0o700)
            shutil.rmtree(self.root, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """The files below, by path; at most `MAX_ENTRIES`."""
        found: list[Entry] = []
        for folder, folders, files in os.walk(self.root, followlinks=False):
            folders.sort()
            linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in sorted(files + linked):
                whole = Path(folder, name)
                facts = whole.lstat()
                path = clean(whole.relative_to(self.root).as_posix())
                found.append(Entry(path, facts.st_size, stat.S_ISLNK(facts.st_mode)))
                if len(found) == MAX_ENTRIES:
                    return found
        return found

    def read(self, path: str) -> str:
        """The text of a file.

        Raises:
            ToolError: not there, no plain file, too large, not text, or a path that leads out.
        """
        with self._opened(path, os.O_RDONLY) as file:
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ToolError(f"{path!r} is larger than {MAX_FILE:,} bytes")
        if b"\x00" in data[:1024]:
            raise ToolError(f"{path!r} is not a text file")
        return data.decode(errors="replace")

    def write(self, path: str, text: str) -> int:
        """Write a file, and the folders above it; gives its size in bytes.

        Raises:
            ToolError: too large, the folder is full, or a path that leads out.
        """
        data = text.encode(errors="replace")
        if len(data) > MAX_FILE:
            raise ToolError(f"the text has {len(data):,} bytes; a file may have {MAX_FILE:,}")
        there = self.entries()
        if sum(e.size for e in there) + len(data) > MAX_FOLDER or len(there) >= MAX_ENTRIES:
            raise ToolError(f"the folder is full ({MAX_FOLDER:,} bytes or {MAX_ENTRIES} files)")
        with self._opened(path, os.O_WRONLY | os.O_CREAT) as file:
            file.truncate()
            file.write(data)
        return len(data)

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[IO[bytes]]:
        parts = _parts(path)
        making = bool(flags & os.O_CREAT)
        try:
            handle = (
                self._by_handle(parts, flags, making) if _BY_HANDLE else self._by_name(parts, flags, making)
            )
        except OSError as e:
            raise _trouble(path, e) from e
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:  # a hard link may be a file from elsewhere
            os.close(handle)
            raise ToolError(f"{path!r} is not a plain file")
        with os.fdopen(handle, "wb" if making else "rb") as file:
            yield file

    def _by_handle(self, parts: list[str], flags: int, making: bool) -> int:
        """Open folder by folder, following no link; a pipe does not make it wait."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in parts[:-1]:
                if making:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folder)
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
        finally:
            os.close(folder)

    def _by_name(self, parts: list[str], flags: int, making: bool) -> int:
        """Where folders cannot be opened one by one (Windows): look where the path leads, then open it."""
        whole = self.root.joinpath(*parts)
        if Path(os.path.realpath(whole)) != Path(os.path.realpath(self.root)).joinpath(*parts):
            raise OSError(errno.ELOOP, "a link")
        if making:
            whole.parent.mkdir(parents=True, exist_ok=True)
        return os.open(whole, flags | getattr(os, "O_BINARY", 0), 0o600)


def _parts(path: str) -> list[str]:
    """The steps of a relative path.

    Raises:
        ToolError: it is absolute, goes up, or holds what no path may hold.
    """
    plain = path.replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if plain.startswith("/") or ":" in path or ".." in parts:
        raise ToolError(f"{path!r} leads out of the folder: give a path below it, such as notes/plan.txt")
    if not parts or len(parts) > _DEPTH or any(len(p.encode(errors="replace")) > 255 for p in parts):
        raise ToolError(f"{path[:300]!r} is no path of a file")
    if clean(path) != path:
        raise ToolError(f"{path!r} holds characters that no path may have")
    return parts


def _trouble(path: str, error: OSError) -> ToolError:
    if isinstance(error, FileNotFoundError):
        return ToolError(f"FileNotFoundError: there is no file {path!r}")
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return ToolError(f"{path!r} is a link, which is not followed")
    if isinstance(error, NotADirectoryError):
        return ToolError(f"{path!r} leads through a file or a link")
    return ToolError(f"{type(error).__name__}: {path!r} cannot be opened: {error.strerror or error}")
