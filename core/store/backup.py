"""Copies of a workspace's file: consistent while others write, checked, and put back in one step.

A backup is one zip with `winnow.db` (a plain SQLite file, without a journal) and `manifest.json` (what is in it,
and its sha256). Packs are not in it: the same version gives the same bytes again. Nor are locks and logs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import IO, Literal, NamedTuple

from pydantic import Field

from core.errors import BusyError, InputError
from core.record import Record
from core.store.copying import appear, copy_database, remove, sync_folder
from core.store.database import Database
from core.store.events import Clock, Events
from core.store.integrity import applied, damage, known_migrations, schema_differences, tables
from core.store.lasting import NUMBERS, RESTORED, Lasting, keep_redactions, lasting
from core.store.versions import Versions

DATABASE, MANIFEST = "winnow.db", "manifest.json"
FORMAT = 1
"""Of backups; a reader refuses a higher one."""
MANIFEST_MOST = 1 << 20
"""Bytes of a manifest."""
SPARE = 64 << 20
"""Bytes that stay free on a disk."""
PATIENCE = 120
"""Looks, four a second, until somebody who holds the write lock is said to be in the way."""
CHUNK = 1 << 20


class Manifest(Record):
    """What is in a backup."""

    format: int = Field(default=FORMAT, ge=1)
    kind: Literal["winnow backup"] = "winnow backup"
    made_at: str = ""
    """UTC, ISO 8601."""
    made_by: str = ""
    migrations: tuple[str, ...] = ()
    """The schema that it has: names of the migrations that made it."""
    version: int = 0
    """Newest version of the library."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Rows of each table."""
    size: int = Field(default=0, ge=0)
    """Bytes of the database."""
    sha256: str = ""


# -- writing -------------------------------------------------------------------------------------------------


def write_backup(source: Path, target: Path, scratch: Path, *, made_at: str, made_by: str) -> Manifest:
    """Write a backup of a database as one file, verified.

    Args:
        source: the database; others may use it meanwhile.
        target: the zip.
        scratch: a folder of the caller's, for the copy on its way.
        made_at: UTC, ISO 8601.
        made_by: who wanted it.

    Raises:
        InputError: the database is damaged, or the target is there or cannot be written.
    """
    copy = scratch / DATABASE
    partial = target.with_name(f".{target.name}.partial")
    try:
        copy_database(source, copy)
        manifest = _manifest(copy, made_at=made_at, made_by=made_by)
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
            archive.writestr(_member(MANIFEST), json.dumps(manifest.model_dump(mode="json"), indent=2) + "\n")
            with copy.open("rb") as read, archive.open(_member(DATABASE), "w", force_zip64=True) as written:
                shutil.copyfileobj(read, written, CHUNK)
        with zipfile.ZipFile(partial) as archive:
            _check_members(archive, target)
            if (found := archive.testzip()) is not None:
                raise InputError(f"{target} could not be written: {found} does not read back.")
        appear(partial, target)
    except FileExistsError as e:
        raise InputError(f"{target} exists; a backup never writes over a file. Name another one.") from e
    except OSError as e:
        raise InputError(f"{target} cannot be written: {e.strerror or e}.") from e
    finally:
        partial.unlink(missing_ok=True)
        remove(copy)
    return manifest


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info


def _manifest(path: Path, *, made_at: str, made_by: str) -> Manifest:
    with closing(sqlite3.connect(path)) as db:
        counts = {n: db.execute(f'SELECT count(*) FROM "{n}"').fetchone()[0] for n in tables(db)}
        [version] = db.execute("SELECT max(number) FROM versions").fetchone()
        migrations = applied(db)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Manifest(
        made_at=made_at,
        made_by=made_by,
        migrations=migrations,
        version=version,
        counts=counts,
        size=path.stat().st_size,
        sha256=sha256,
    )


# -- reading -------------------------------------------------------------------------------------------------


def read_backup(file: Path, into: Path) -> Manifest:
    """Check a backup, or a plain database such as the copy before a migration, and lay it at `into`.

    Raises:
        InputError: it cannot be read, is no workspace, is damaged, of a newer Winnow, or not what its manifest says.
    """
    try:
        with file.open("rb") as opened:
            head = opened.read(16)
        if head == b"SQLite format 3\x00":
            _check_room(file.stat().st_size, into.parent)
            shutil.copyfile(file, into)
            journal = file.with_name(f"{file.name}-wal")
            if journal.exists():
                shutil.copyfile(journal, into.with_name(f"{into.name}-wal"))
            return check_workspace(into, file)
        if not zipfile.is_zipfile(file):
            raise InputError(f"{file} is neither a backup of Winnow nor a database.")
        with zipfile.ZipFile(file) as archive:
            manifest = _unpack(archive, file, into)
    except OSError as e:
        raise InputError(f"{file} cannot be read: {e.strerror or e}.") from e
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError) as e:
        raise InputError(f"{file} is a damaged zip ({e}).") from e
    found = check_workspace(into, file)
    if (found.migrations, found.version, found.counts) != (
        manifest.migrations,
        manifest.version,
        manifest.counts,
    ):
        raise InputError(f"{file} does not hold what its manifest says; it is not the backup that was made.")
    return manifest


def _unpack(archive: zipfile.ZipFile, file: Path, into: Path) -> Manifest:
    _check_members(archive, file)
    with archive.open(MANIFEST) as opened:
        data = json.loads(opened.read(MANIFEST_MOST))
    if isinstance(data, dict) and isinstance(data.get("format"), int) and data["format"] > FORMAT:
        raise InputError(
            f"{file} was made by a newer Winnow (format {data['format']}). Upgrade Winnow to restore it."
        )
    manifest = Manifest.read(data, where=f"{file}: {MANIFEST}")
    if archive.getinfo(DATABASE).file_size != manifest.size:
        raise InputError(f"{file}: {DATABASE} has not the size that the manifest says.")
    _check_room(manifest.size, into.parent)
    with archive.open(DATABASE) as read, into.open("xb") as written:
        if _copied(read, written, manifest.size) != manifest.sha256:
            raise InputError(
                f"{file}: {DATABASE} has not the checksum that the manifest says; it was changed."
            )
    return manifest


def _check_members(archive: zipfile.ZipFile, file: Path) -> None:
    """Exactly the two files that a backup has; no paths, no doubles, no cipher: so none of the tricks of zips."""
    infos = archive.infolist()
    if sorted(info.filename for info in infos) != sorted((DATABASE, MANIFEST)):
        raise InputError(
            f"{file} is not a backup of Winnow: that holds {MANIFEST} and {DATABASE}, nothing else."
        )
    if any(info.flag_bits & 1 for info in infos):
        raise InputError(f"{file} is encrypted; Winnow cannot read it.")
    if archive.getinfo(MANIFEST).file_size > MANIFEST_MOST:
        raise InputError(f"{file}: {MANIFEST} is too large.")


def _check_room(size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size + SPARE > free:
        raise InputError(
            f"There is too little room in {folder}: {size:,} bytes are needed, {free:,} are free."
        )


def _copied(read: IO[bytes], written: IO[bytes], most: int) -> str:
    """Copy no more than was promised; gives the sha256."""
    digest, left = hashlib.sha256(), most
    while left >= 0 and (chunk := read.read(min(CHUNK, left + 1))):
        digest.update(chunk)
        written.write(chunk)
        left -= len(chunk)
    return digest.hexdigest()


def check_workspace(path: Path, named: Path) -> Manifest:
    """What is in a database; its journal, if there is one, is taken in.

    Args:
        path: the database.
        named: what to call it.

    Raises:
        InputError: it is no workspace, is damaged, or of a newer Winnow.
    """
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA journal_mode = DELETE")
            if found := damage(db):
                raise InputError(f"{named} is damaged: {found[0]}.")
            names = applied(db)
            if not names:
                raise InputError(f"{named} is a database, but not one of Winnow.")
            if newer := sorted(set(names) - set(known_migrations())):
                raise InputError(
                    f"{named} was written by a newer Winnow (it has {newer[-1]}). Upgrade Winnow first."
                )
        return _manifest(path, made_at="", made_by="")
    except sqlite3.Error as e:
        raise InputError(f"{named} is damaged ({e}).") from e


# -- putting back --------------------------------------------------------------------------------------------


class Carried(NamedTuple):
    """What of the workspace that was there goes on in the one that is put in its place."""

    redactions: tuple[int, ...] = ()
    """Made after the backup: what they took out may be in it."""
    versions: tuple[int, ...] = ()
    """Numbers that were given after it; the library reads the same in all of them."""


def prepare(path: Path, named: Path, clock: Clock, actor: str, kept: str, before: Lasting | None) -> Carried:
    """Bring a checked copy to the present schema, tell in its log where it came from, and carry over what lasts.

    Args:
        path: the copy.
        named: what it is a copy of.
        clock: of the log.
        actor: who restores it.
        kept: name of what was there before, to go back to.
        before: what of that outlasts it; None where nothing was there, or it could not be read.

    Raises:
        InputError: its tables, triggers or views are not those that Winnow makes.
    """
    database = Database(path)
    events = Events(database, clock)
    try:
        own = lasting(path) or Lasting({})
        other = before or Lasting({})
        same = own.first in (None, other.first)
        given = {kind: max(own.given.get(kind, 0), other.given.get(kind, 0)) for kind in NUMBERS}
        with database.writing():
            redactions = keep_redactions(database, other.redactions)
            versions = _pass_over(Versions(database, events), given["versions"] if same else 0, actor)
            events.append(actor, RESTORED, named.name, kept=kept, given={**given}, redactions=[*redactions])
    finally:
        database.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        if found := schema_differences(db):
            raise InputError(f"{named} is not as Winnow makes it: {found[0]}.")
    return Carried(tuple(redactions), versions)


def _pass_over(versions: Versions, number: int, actor: str) -> tuple[int, ...]:
    """Versions that change nothing, up to a number: what was shipped under theirs is never mistaken for another one."""
    library, passed = versions.library(), []
    for parent in range(library.version, number):
        message = f"As version {library.version}: number {parent + 1} was given before a restore"
        made = versions.save(
            library, library, parent=parent, author=actor, message=message, event="version.rolled_back"
        )
        passed.append(made.number)
    return tuple(passed)


def put_in_place(new: Path, live: Path) -> None:
    """Give the live database the content of another one, in one transaction of SQLite's own.

    Whoever has it open goes on with the new content; a kill at any instant leaves the old or the new one. Only where
    the live file is no database at all is it replaced.

    Raises:
        BusyError: somebody holds its write lock.
    """
    if not usable(live):
        remove(live)
        new.rename(live)
        sync_folder(live.parent)
        return
    looks = 0

    def look(status: int, _remaining: int, _total: int) -> None:
        nonlocal looks
        looks += status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        if looks > PATIENCE:
            raise BusyError(f"Another process writes to {live}; nothing was changed. Try again.")

    with (
        closing(sqlite3.connect(live)) as target,
        closing(sqlite3.connect(new, isolation_level=None)) as source,
    ):
        [size] = target.execute("PRAGMA page_size").fetchone()
        source.execute(f"PRAGMA page_size = {size:d}")
        source.execute("VACUUM")
        source.backup(target, progress=look)


def usable(path: Path) -> bool:
    """Whether a file is a database that can be opened, whatever is in it."""
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            db.execute("BEGIN IMMEDIATE")
            db.rollback()
    except sqlite3.DatabaseError as e:
        if "locked" in str(e):
            raise BusyError(f"Another process writes to {path}; nothing was changed. Try again.") from e
        return False
    return True
