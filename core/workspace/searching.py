"""The files of a workspace, searched for texts byte by byte: inside zips, databases and compressed values, too."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from core.errors import InputError
from core.record import Record
from core.store.backup import MANIFEST, Manifest
from core.store.needle import Needle, count_in
from core.store.remains import SQLITE, Scratch, count_remains
from core.workspace.quiet import scratch
from core.workspace.raw import RAW
from core.workspace.unfinished import IMPORTS, unfinished
from core.workspace.workspace import DATABASE

GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
UNREADABLE = (
    OSError,
    InputError,
    zipfile.BadZipFile,
    RuntimeError,
    NotImplementedError,
    EOFError,
    zlib.error,
)
DEEP = 3
"""Zips inside zips that are looked into."""


class Found(Record):
    """Where a text is."""

    file: str
    """Inside the workspace; what lies in a zip has an exclamation mark before its name."""
    count: int
    """Occurrences; 0 = the file could not be looked into."""
    what: str
    """What can be done."""


def search_files(folder: Path, needles: Sequence[Needle], *, database: bool) -> list[Found]:
    """Every file of a workspace that holds one of the texts, or that cannot be read.

    What interrupted imports had read is passed over: redacting drops it.

    Args:
        folder: of the workspace.
        needles: what to look for.
        database: whether its own database and the journals of that are looked at, too.
    """
    found, dropped = [], {spool.parent for spool in unfinished(folder)}
    paths = sorted(p for p in folder.rglob("*") if p.is_file())
    search = _Search(needles, partial(scratch, folder))
    for path in paths:
        own = path.parent == folder and path.name.startswith(DATABASE)
        if (own and not database) or dropped & {*path.parents}:
            continue
        name = str(path.relative_to(folder))
        try:
            count = search.in_file(path)
        except UNREADABLE as e:
            found.append(Found(file=name, count=0, what=f"It could not be searched ({e})."))
            continue
        if count:
            found.append(Found(file=name, count=count, what=_what(path, folder, own)))
    return found


def is_copy(path: Path, folder: Path) -> bool:
    """Whether a file is a backup, or a copy from before an upgrade."""
    inside = path.relative_to(folder).parts
    return inside[0] == "backups" or (len(inside) == 1 and path.name.startswith("winnow.before-"))


def remove_copies(folder: Path, needles: Sequence[Needle]) -> list[str]:
    """Remove the backups and copies that hold a text, not those that nothing can be said of; gives their names."""
    names = [found.file for found in search_files(folder, needles, database=False) if found.count]
    copies = [name for name in names if is_copy(folder / name, folder)]
    for name in copies:
        (folder / name).unlink()
    return copies


def _what(path: Path, folder: Path, own: bool) -> str:
    if own:
        return "Another process has the workspace open: close it, and redact the same text again."
    if is_copy(path, folder):
        return "A copy, which is never rewritten: --remove-copies removes it."
    if path.relative_to(folder).parts[0] == "packs":
        return "A pack, which is never rewritten: export it anew, and remove this one wherever it was sent."
    inside = path.relative_to(folder).parts
    if inside[:2] == (IMPORTS, RAW):
        return "A file that was kept as it came (--keep-raw), which is never rewritten: remove it yourself."
    return "Not a file of Winnow's: remove or mend it yourself."


class _Search:
    """What one search looks for, and where it may write a database anew."""

    def __init__(self, needles: Sequence[Needle], room: Scratch) -> None:
        self._needles = needles
        self._room = room

    def in_file(self, path: Path) -> int:
        """Occurrences in a file, and in what lies inside it."""
        with path.open("rb") as file:
            head = file.read(len(SQLITE))
            if head == SQLITE:
                return count_remains(path, self._needles, self._room)
            file.seek(0)
            count = count_in(file, self._needles)
        if head.startswith((GZIP, PARQUET)) or zipfile.is_zipfile(path):
            count += sum(self._inside(path.name, path.read_bytes(), DEEP))
        return count

    def _in_member(self, name: str, data: bytes, deep: int) -> int:
        if data.startswith(SQLITE):
            return count_remains(Path(name), self._needles, self._room, data)
        return self._in_bytes(data) + sum(self._inside(name, data, deep))

    def _inside(self, name: str, data: bytes, deep: int) -> Iterator[int]:
        """Occurrences in what an archive holds in other bytes than its own.

        Raises:
            InputError: nothing can be said of what is inside.
        """
        if data.startswith(GZIP):
            with gzip.open(io.BytesIO(data)) as file:
                yield count_in(file, self._needles)
        elif data.startswith(PARQUET):
            raise InputError("its columns are compressed")
        elif deep and zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                backup = {DATABASE, MANIFEST} == {*archive.namelist()}
                for info in archive.infolist():
                    member = archive.read(info)
                    if backup and info.filename == MANIFEST:
                        member = _said_in(member)
                    yield self._in_member(f"{name}!{info.filename}", member, deep - 1)

    def _in_bytes(self, data: bytes) -> int:
        return sum(needle.count_bytes(data) for needle in self._needles)


def _said_in(manifest: bytes) -> bytes:
    """What a user said in a backup's manifest; all else in it is Winnow's own."""
    try:
        return Manifest.model_validate_json(manifest).made_by.encode()
    except ValidationError:
        return manifest
