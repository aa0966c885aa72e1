"""Recorded rollouts of each format: reading and mapping them beside plain `json.loads`, masking, and storing.

Times are of the processor: one thread does all of it, and other work on the machine does not count.
`python -m tests.bench.importers NAME MAKER FILE` measures in a process of its own.
"""

from __future__ import annotations

import importlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from core.importers.attempt import Attempt, TraceFormat
from core.importers.formats import FORMATS
from core.importers.masking import Masker
from core.importers.opened import Opened
from tests.bench.child import peak_mb
from tests.bench.report import ROOT, Row, at_most

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

MAKERS = sorted(path.stem for path in (ROOT / "tests" / "importers").glob("make_*.py"))
STREAMED = ("make_messages", "make_inspect", "make_nemo_gym")
"""Of these a file of 1 GB is imported."""
BEST_OF = 9
"""Reading and `json.loads` take turns, so that a noisy neighbour of this machine meets both."""
TIMES = 4.0
"""What reading and mapping may take, in times of `json.loads` over the same lines."""
MOST_MB = 600
MB = 1_000_000
LEAST = 1_000
"""Bytes of an attempt that are reckoned with at least: generated Parquet packs to nearly nothing."""
FIRST = 240
"""Attempts of a first file, from whose size it is reckoned how many make the size that is wanted."""


def importers(quick: bool) -> list[Row]:
    """10 MB of each format; 2 MB where it is to be quick."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        size = (2 if quick else 10) * MB
        return [row for maker in MAKERS for row in _of_format(maker, Path(folder), size)]


def large_imports(quick: bool) -> list[Row]:
    """1 GB of three formats with peak memory; 100 MB where it is to be quick."""
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        size = (100 if quick else 1_000) * MB
        return [row for maker in STREAMED for row in _large(maker, Path(folder), size)]


def _of_format(maker: str, folder: Path, size: int) -> list[Row]:
    path = folder / maker
    _child("make", maker, path, size)
    found = _child("measure", maker, path)
    path.unlink()
    mb = found["bytes"] / MB
    name = f"{found['title']}, {mb:.0f} MB, {found['attempts']:,} attempts"
    speed = f"{mb / found['read_s']:.1f} MB/s, {found['attempts'] / found['read_s']:,.0f} attempts/s"
    if found["json_s"]:
        ratio = found["read_s"] / found["json_s"]
        first = Row(
            f"{name}: reading and mapping",
            f"{ratio:.1f} x json.loads, {speed}",
            f"<= {TIMES:.0f} x",
            ratio <= TIMES,
        )
    else:
        first = Row(f"{name}: reading and mapping", speed)
    masking, storing = (f"{mb / max(found[what], 1e-3):.1f} MB/s" for what in ("mask_s", "store_s"))
    return [first, Row(f"{name}: masking; spooling, grouping and storing", f"{masking}; {storing}")]


def _large(maker: str, folder: Path, size: int) -> list[Row]:
    path = folder / maker
    _child("make", maker, path, size)
    found = _child("whole", maker, path)
    name = f"{found['title']}, {_unpacked(path) / MB:,.0f} MB unpacked, {found['attempts']:,} attempts"
    path.unlink()
    return [
        at_most(f"{name}: peak memory of the import", found["peak_mb"], MOST_MB, "MB", 0),
        Row(f"{name}: the import", f"{found['cpu_s']:.0f} s of the processor"),
    ]


def _child(what: str, maker: str, path: Path, *more: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.importers", what, maker, str(path), *map(str, more)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what} {maker} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- in a process of its own ---


def make(maker: str, path: Path, size: int) -> dict[str, Any]:
    """Write a file of about so many bytes, unpacked."""
    written: Callable[..., object] = importlib.import_module(f"tests.importers.{maker}").make
    first = path.with_name(f"{path.name}-first")
    written(first, FIRST)
    written(path, max(FIRST, FIRST * size // max(_unpacked(first), FIRST * LEAST)))
    first.unlink()
    return {}


def _unpacked(path: Path) -> int:
    """Bytes of a file, or of what is in an archive."""
    if not zipfile.is_zipfile(path):
        return path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def measure(maker: str, path: Path) -> dict[str, Any]:
    """Each part of an import by itself, and what plain reading of the same file takes."""
    form = _form(path)
    attempts = sum(isinstance(found, Attempt) for found in form.read(Opened(path)))
    reads, plains = zip(*((_read(form, path), _plain(path)) for _ in range(BEST_OF)), strict=True)
    mask_s = min(_masked(form, path) for _ in range(3))
    whole_s = _imported(path)[1]
    return {
        "title": form.title,
        "bytes": _unpacked(path),
        "attempts": attempts,
        "json_s": min(plains),
        "read_s": min(reads),
        "mask_s": mask_s,
        "store_s": whole_s - min(reads) - mask_s,
    }


def _read(form: TraceFormat, path: Path) -> float:
    """Seconds of reading and mapping, with nothing else between two attempts."""
    began = time.process_time()
    for _ in form.read(Opened(path)):
        pass
    return time.process_time() - began


def _masked(form: TraceFormat, path: Path) -> float:
    """Seconds of masking alone."""
    mask_s, masker = 0.0, Masker()
    for found in form.read(Opened(path)):
        if isinstance(found, Attempt):
            began = time.process_time()
            masker.mask(found)
            mask_s += time.process_time() - began
    return mask_s


def whole(maker: str, path: Path) -> dict[str, Any]:
    """All of an import, and the most memory that it held."""
    attempts, cpu_s = _imported(path)
    return {"title": _form(path).title, "attempts": attempts, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def _form(path: Path) -> TraceFormat:
    opened = Opened(path)
    return next(form for form in FORMATS if form.recognises(opened))


def _imported(path: Path) -> tuple[int, float]:
    """(attempts, seconds of the processor) of an import into a new workspace."""
    from core.workspace import Workspace
    from core.workspace.intake import ImportOptions

    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as folder:
        workspace = Workspace(Path(folder) / "workspace")
        began = time.process_time()
        report = workspace.intake.add_rollouts([path], ImportOptions(), "bench")
        return report.attempts, time.process_time() - began


def _plain(path: Path) -> float:
    """Seconds of `json.loads` over all JSON of a file; 0 where it is none (a database, a Parquet file)."""
    began = time.process_time()
    try:
        for text in _texts(path):
            json.loads(text)
    except (ValueError, sqlite3.Error):
        return 0.0
    return time.process_time() - began


def _texts(path: Path) -> Iterable[bytes]:
    """The JSON texts of a file: its lines, itself, or the members of an archive."""
    if zipfile.is_zipfile(path):
        return _members(path)
    with path.open("rb") as file:
        first = file.readline()
    try:
        json.loads(first)
    except ValueError:
        return [path.read_bytes()]
    return _lines(path)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _members(path: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield archive.read(name)


WORK: dict[str, Callable[..., dict[str, Any]]] = {"make": make, "measure": measure, "whole": whole}


def main() -> None:
    what, maker, path, *more = sys.argv[1:]
    sys.stdout.write(json.dumps(WORK[what](maker, Path(path), *map(int, more))) + "\n")


if __name__ == "__main__":
    main()
