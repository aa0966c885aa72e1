"""The files that an import means: named ones, those in folders and archives, and those that a pattern fits."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from core.errors import InputError
from core.importers.archive_end import members_told
from core.importers.attempt import TraceFormat
from core.importers.mapped import USUAL
from core.importers.opened import SMALL, Opened
from core.importers.parquet import MAGIC, column_types
from core.importers.report import FileRead
from core.importers.rows import columns_of, head_rows
from core.importers.source import has_half_surrogates, sealed, storable

MAX_MEMBERS = 100_000
"""Files of an archive."""
MAX_UNPACKED = 20 * 2**30
"""Bytes of an archive, unpacked."""
MAX_RATIO = 200
"""Times its packed size that an archive may have unpacked, above `FREE_UNPACKED` bytes."""
FREE_UNPACKED = 100_000_000

INNER = "inner"
"""Folder for what archives inside of archives hold."""
LFS = b"version https://git-lfs.github.com/spec/v1"
ZIP = b"PK\x03\x04"


class Located(NamedTuple):
    """One file that may hold rollouts."""

    path: Path
    name: str
    """What to call it: its name, or its path within the folder or archive that was named."""
    root: Path
    """Nothing outside of it is read."""
    named: bool
    """Whether the user named this very file: then it must be one that can be read."""


Recogniser = Callable[[Opened], TraceFormat | None]


def located(
    paths: Sequence[Path | str], scratch: Path, recognised: Recogniser
) -> Iterator[Located | FileRead]:
    """All files that are meant, in the order given and by name within a folder; and those that are skipped, and why.

    Args:
        paths: files, folders, patterns (`logs/*.eval`), archives.
        scratch: where archives are unpacked; made when it is needed, and not taken away.
        recognised: the format of a file: a zip archive that is a format of its own is not unpacked.

    Raises:
        InputError: there is no such file, or an archive cannot be unpacked.
    """
    for given in paths:
        for path in _meant(Path(given)):
            if path.is_dir():
                yield from _in_folder(path, path, "", scratch, recognised)
            else:
                yield from _file(Located(path, path.name, path.parent, named=True), scratch, recognised)


def _meant(path: Path) -> list[Path]:
    path = path.expanduser()
    if path.is_file() or path.is_dir():
        return [path]
    if path.exists():
        raise InputError(
            f"{str(path)!r} is neither a file nor a folder; save what it gives into a file first."
        )
    found = sorted(glob.glob(str(path), recursive=True)) if glob.has_magic(str(path)) else []
    if not found:
        raise InputError(f"There is no file {str(path)!r}.")
    return [Path(each) for each in found]


def _in_folder(
    folder: Path, root: Path, prefix: str, scratch: Path, recognised: Recogniser
) -> Iterator[Located | FileRead]:
    closed: list[OSError] = []
    for at, folders, files in os.walk(folder, onerror=closed.append):
        folders.sort()
        hidden = [f for f in folders if f.startswith(".")]
        folders[:] = [f for f in folders if not f.startswith(".") and f != "__MACOSX"]
        here = Path(at)
        for name in hidden:
            yield FileRead(
                name=_called(here / name, folder, prefix), became="skipped", reason="a hidden folder"
            )
        for name in sorted(files):
            path, called = here / name, _called(here / name, folder, prefix)
            if has_half_surrogates(f"{called}{path.resolve()}"):
                yield FileRead(
                    name=storable(called), became="not read", reason="its name is no UTF-8 text; rename it"
                )
            elif name.startswith("."):
                yield FileRead(name=called, became="skipped", reason="a hidden file")
            elif not path.resolve().is_relative_to(root.resolve()):
                yield FileRead(name=called, became="skipped", reason="a link that leads out of the folder")
            elif not path.is_file():
                yield FileRead(
                    name=called, became="skipped", reason="no file: a pipe, a device, or a broken link"
                )
            else:
                yield from _file(Located(path, called, root, named=False), scratch, recognised)
    for error in closed:
        name = _called(Path(str(error.filename)), folder, prefix)
        yield FileRead(name=name, became="not read", reason=f"the folder cannot be read: {error.strerror}")


def _called(path: Path, folder: Path, prefix: str) -> str:
    return prefix + path.relative_to(folder).as_posix()


def _file(file: Located, scratch: Path, recognised: Recogniser) -> Iterator[Located | FileRead]:
    """The file itself, or what is in it where it is an archive of files."""
    opened = Opened(file.path, file.name, file.root)
    if opened.head.startswith(ZIP) and recognised(opened) is None:
        if scratch.parts[-2:] == (INNER, INNER):
            yield FileRead(name=file.name, became="skipped", reason="an archive inside of archives")
            return
        into = scratch / hashlib.sha256(os.fsencode(file.path)).hexdigest()[:12]
        try:
            _unpack(file.path, file.name, into)
        except InputError as e:
            if file.named:
                raise
            reason = str(e).removeprefix(file.name).strip(" .")  # it does not stop the other files
            yield FileRead(name=file.name, became="not read", reason=reason)
            return
        yield from _in_folder(into, into, f"{file.name}/", scratch / INNER, recognised)
    else:
        yield file


def _unpack(path: Path, name: str, into: Path) -> None:
    """Unpack an archive: only plain files inside the folder, within the limits."""
    try:
        if (told := members_told(path)) > MAX_MEMBERS:
            raise InputError(
                f"{name} holds {told:,} files; at most {MAX_MEMBERS:,} are unpacked, so split it."
            )
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            size, packed = sum(m.file_size for m in members), path.stat().st_size
            if len(members) > MAX_MEMBERS or size > MAX_UNPACKED:
                raise InputError(f"{name} unpacks to {len(members):,} files of {size:,} bytes; split it.")
            if size > max(FREE_UNPACKED, MAX_RATIO * packed):
                raise InputError(
                    f"{name} unpacks to {size:,} bytes, {size // max(packed, 1)} times its own size."
                )
            named: Counter[str] = Counter()
            for member in members:
                inside = PurePosixPath(member.filename.replace("\\", "/"))
                if inside.is_absolute() or ".." in inside.parts or "\x00" in member.filename:
                    raise InputError(
                        f"{name} holds a file that would lie outside of it: {member.filename[:100]!r}."
                    )
                named[str(inside)] += 1
                if (
                    times := named[str(inside)]
                ) > 1:  # a name may stand twice in an archive: neither file is lost
                    inside = inside.with_name(f"{times} {inside.name}")
                target = into / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as sink:
                    shutil.copyfileobj(_Bounded(source, member.file_size, name), sink, 2**20)
    except (
        *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
        *(EOFError, OSError, ValueError),
    ) as e:
        why = "it is damaged" if isinstance(e, zlib.error) else getattr(e, "strerror", None) or e
        raise InputError(f"{name} cannot be unpacked: {why}.") from e


class _Bounded:
    """Reads a member up to the size that the archive tells."""

    def __init__(self, source: object, size: int, name: str) -> None:
        self._source, self._left, self._name = source, size, name

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._source.read(size)  # type: ignore[attr-defined]
        self._left -= len(data)
        if self._left < 0:
            raise InputError(f"{self._name} is damaged: a file in it is larger than it says.")
        return data


def no_data(opened: Opened) -> str:
    """Why a file holds nothing that can be read, as a clause; empty where it may."""
    head = opened.head
    if head.startswith(LFS):
        facts = dict(
            line.split(" ", 1) for line in head.decode("utf-8", "replace").splitlines() if " " in line
        )
        size = facts.get("size", "?")
        return (
            f"it is only a Git LFS pointer ({facts.get('oid', 'no oid')[:19]}…, {size} bytes); fetch the file itself "
            "with git lfs pull"
        )
    if not head.strip():
        return "it is empty" if not opened.damaged else "its compression is damaged from the beginning"
    return sealed(head)


def _damage_of(opened: Opened) -> str:
    """Why a file that begins as one JSON value is none, as a clause."""
    if len(opened.records) > 1 or not opened.head.lstrip().startswith((b"{", b"[")):
        return ""
    try:
        if opened.path.stat().st_size <= SMALL:
            opened.whole  # noqa: B018  # parsed for what it says
    except InputError as e:
        return f"it {str(e).removeprefix(opened.name).strip(' .')}"
    return ""


def unknown(opened: Opened) -> str:
    """Why a file is none that is read, as a clause, and what may help."""
    reason = "in no format of recorded rollouts that Winnow knows"
    if opened.head.startswith(MAGIC) and not column_types(opened):
        return "it is a Parquet file that is damaged or cut off; copy it again"
    if damage := _damage_of(opened):
        return f"{reason}; {damage}"
    rows = head_rows(opened)
    held = columns_of(rows)
    if any(name in held for name in USUAL["question"]) and any(name in held for name in USUAL["answer"]):
        return f"{reason}; it looks like tasks, which `winnow tasks import` reads"
    return f"{reason}; a mapping (--mapping) can say which columns hold what" if len(held) > 1 else reason
