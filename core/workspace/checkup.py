"""The doctor: everything that can be found wrong with a workspace and around it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import InputError, NotFoundError, TrustError
from core.record import Record
from core.store import Store
from core.store.checks import check_content, check_file, mend
from core.store.integrity import Finding
from core.trust import load_trust, trust_path
from core.workspace.care import Care
from core.workspace.quiet import SCRATCH
from core.workspace.workspace import Workspace

LEAST_FREE = 200 << 20
"""Bytes that should be free on the disk of a workspace; or twice its database, where that is more."""
JOURNAL_MOST = 64 << 20
"""Bytes of a journal that is worth emptying."""


class Diagnosis(Record):
    """What the doctor found."""

    findings: tuple[Finding, ...] = ()
    """What is wrong now."""
    mended: tuple[Finding, ...] = ()
    """What was wrong, and is mended."""
    backup: Path | None = None
    """The backup that was made before anything was mended."""


class Checkup:
    """Looks at one workspace. It need not be one that can be opened."""

    def __init__(self, care: Care) -> None:
        self._care = care
        self._folder = care.folder

    def check(self) -> list[Finding]:
        """Look at everything; nothing is changed, but for an upgrade of the schema (of which a copy is kept).

        Raises:
            InputError: there is no workspace.
        """
        self._care.check_there()
        found, usable = check_file(self._care.database)
        if usable:
            try:
                store = Workspace(self._folder, self._care.clock).store
                found += [*check_content(store, self._care.database), *self._stale_locks(store)]
            except InputError as e:
                found.append(Finding(what=str(e), where=self._care.database.name, how="See there."))
        return [*found, *self._leftovers(), *self._room(), *self._permissions(), *_models()]

    def fix(self, actor: str) -> Diagnosis:
        """Mend what can be mended without asking, after a backup; then look again.

        Raises:
            InputError: there is no workspace, or it is so damaged that no backup can be made.
        """
        before = self.check()
        kinds = {finding.mend for finding in before if finding.mend is not None}
        if not kinds:
            return Diagnosis(findings=tuple(before))
        backup = self._care.backup(None, actor).path
        store = Workspace(self._folder, self._care.clock).store
        mend(store, self._care.database, kinds)
        for finding in before:
            if finding.mend == "locks":
                (self._folder / finding.where).unlink(missing_ok=True)
            elif finding.mend == "leftovers":
                _remove(self._folder / finding.where)
        after = self.check()
        mended = [finding for finding in before if finding not in after]
        return Diagnosis(findings=tuple(after), mended=tuple(mended), backup=backup)

    def _stale_locks(self, store: Store) -> Iterator[Finding]:
        """Lock files of runs that are not there, which nobody holds."""
        for path in sorted((self._folder / "locks").glob("R*.lock")):
            try:
                store.runs.get(path.stem)
            except NotFoundError:
                if _free(path):
                    yield Finding(
                        what="a lock of a run that is not there",
                        where=str(path.relative_to(self._folder)),
                        how="--fix removes it.",
                        mend="locks",
                    )

    def _leftovers(self) -> Iterator[Finding]:
        """What a killed process left on its way."""
        patterns = (f"{SCRATCH}*", "*.partial*", "backups/.*.partial", "logs/*.partial")
        for path in sorted({path for pattern in patterns for path in self._folder.glob(pattern)}):
            yield Finding(
                what="a left-over of a command that was killed, or is at work",
                where=str(path.relative_to(self._folder)),
                how="If no backup, restore or redaction is at work: --fix removes it.",
                mend="leftovers",
            )

    def _room(self) -> Iterator[Finding]:
        database, free = self._care.database, shutil.disk_usage(self._folder).free
        if free < max(LEAST_FREE, 2 * database.stat().st_size):
            yield Finding(
                what=f"only {free:,} bytes are free", where=str(self._folder), how="Make room on the disk."
            )
        journal = database.with_name(f"{database.name}-wal")
        if journal.exists() and journal.stat().st_size > JOURNAL_MOST:
            yield Finding(
                what=f"a journal of {journal.stat().st_size:,} bytes",
                where=journal.name,
                how="--fix empties it, once nobody reads.",
                mend="checkpoint",
            )

    def _permissions(self) -> Iterator[Finding]:
        if os.name == "posix":
            for path in (self._folder, self._care.database):
                if path.stat().st_mode & stat.S_IWOTH:
                    yield Finding(what="everyone may write to it", where=str(path), how=f"chmod o-w {path}")
        if not os.access(self._care.database, os.W_OK):
            yield Finding(
                what="it cannot be written to",
                where=str(self._care.database),
                how="Change its owner or mode.",
            )
        try:
            load_trust()
        except TrustError as e:
            yield Finding(what=str(e), where=str(trust_path()), how="Mend that file.")


def _models() -> Iterator[Finding]:
    """Model files in the cache that are not what they should be; one that is not there is fetched when needed."""
    from core.embedder import NETWORK, TOKENIZER
    from core.local_model.server import MODEL

    for asset in (MODEL, NETWORK, TOKENIZER):
        path = asset.path
        if not path.exists():
            continue
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != asset.sha256:
                how = "Remove it; it is fetched anew when it is needed."
                yield Finding(what=f"{asset.what} is not what it should be", where=str(path), how=how)


def _free(path: Path) -> bool:
    try:
        with FileLock(path).acquire(blocking=False):
            return True
    except Timeout:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
