"""The files of a workspace, searched for texts byte by byte: inside zips, databases and compressed values, too."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from core.errors import InputError
from core.record import Record
from core.store.needle import Needle
from core.store.redaction import search_database
from core.workspace.raw import RAW
from core.workspace.unfinished import IMPORTS, unfinished
from core.workspace.workspace import DATABASE

WINDOW = 8 << 20
"""Bytes of a file that are looked at together."""
SQLITE = b"SQLite format 3\x00"
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
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


def search_files(
    folder: Path, needles: Sequence[Needle], chance: Collection[str], *, database: bool
) -> list[Found]:
    """Every file of a workspace that holds one of the texts, or that cannot be read.

    What interrupted imports had read is passed over: redacting drops it.

    Args:
        folder: of the workspace.
        needles: what to look for.
        chance: ids, hashes and times of the database that hold a text by chance: there, they do not count.
        database: whether its own database and the journals of that are looked at, too.
    """
    found, dropped = [], {spool.parent for spool in unfinished(folder)}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        own = path.parent == folder and path.name.startswith(DATABASE)
        if own and not database:
            continue
        if dropped & {*path.parents}:
            continue
        name = str(path.relative_to(folder))
        try:
            count = _in_file(path, needles, chance if own else ())
            if not own:
                count += sum(_inside(name, path.read_bytes(), needles, DEEP)) if _opens(path) else 0
        except (
            *(OSError, InputError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError),
            zlib.error,
        ) as e:
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
    """Remove the backups and copies that hold a text; gives their names."""
    names = [found.file for found in search_files(folder, needles, (), database=False)]
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


def _in_file(path: Path, needles: Sequence[Needle], chance: Collection[str]) -> int:
    """Occurrences in the raw bytes, read in windows that overlap."""
    with path.open("rb") as file:
        return _in_stream(file, needles, chance)


def _in_stream(file: io.BufferedIOBase, needles: Sequence[Needle], chance: Collection[str]) -> int:
    overlap = max(needle.longest for needle in needles)
    masks = sorted((text.encode() for text in chance), key=len, reverse=True)
    count, kept = 0, b""
    while chunk := file.read(WINDOW):
        data = kept + chunk
        for mask in masks:
            data = data.replace(mask, bytes(len(mask)))
        count += sum(needle.count_bytes(data) for needle in needles)
        kept = data[-overlap:] if len(chunk) == WINDOW else b""
        count -= sum(needle.count_bytes(kept) for needle in needles) if kept else 0
    return count


def _opens(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(len(SQLITE))
    return head == SQLITE or head.startswith((GZIP, PARQUET)) or zipfile.is_zipfile(path)


def _inside(name: str, data: bytes, needles: Sequence[Needle], deep: int) -> Iterator[int]:
    """Occurrences in what a database or an archive holds in other bytes than its own.

    Raises:
        InputError: nothing can be said of what is inside.
    """
    if data.startswith(SQLITE):
        # A journal mode that needs a second file cannot be had in memory.
        plain = data[:18] + b"\x01\x01" + data[20:]
        yield sum(search_database(Path(name), needles, plain).values())
    elif data.startswith(GZIP):
        with gzip.open(io.BytesIO(data)) as file:
            yield _in_stream(file, needles, ())
    elif data.startswith(PARQUET):
        raise InputError("its columns are compressed")
    elif deep and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                member = archive.read(info)
                yield sum(needle.count_bytes(member) for needle in needles)
                yield from _inside(f"{name}!{info.filename}", member, needles, deep - 1)
