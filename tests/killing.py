"""Kill a command at an instant that is chosen by a seed: before its nth change on disk, or after a part of its time.

    with Launcher() as launcher:
        command = ["publish", "-m", "x", "--workspace", str(folder)]
        calm = launcher.run(command)                      # of `winnow`, on a copy: its changes are counted
        for nth in chosen(calm.changes, 10, seed=1):
            launcher.run(command, before=nth)             # on a fresh copy each: dies before its nth change
        launcher.run(command, after_s=0.03)               # dies 30 ms after its first change, wherever it is

A change is a statement that writes to an SQLite file (BEGIN, COMMIT and VACUUM among them), a file that is opened to be
written, and a file that is renamed, linked or removed. Nothing of what is killed has to know of it: the process
listens to SQLite's trace and to Python's audit events. Each command is a process of its own, forked from one that has
imported Winnow already: what takes its time is the command. What must hold afterwards is in `tests.ordeals`.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import pkgutil
import random
import re
import runpy
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120
"""A command that runs so long hangs; it is ended, and that is told."""
NEVER = 10**9
USER = "ann"
"""Who gives the commands."""

WRITES = re.compile(
    r"\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|VACUUM"
    r"|PRAGMA\s+(wal_checkpoint|journal_mode))\b",
    re.IGNORECASE,
)
CHANGES = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}
WARM = ("core.cli", "core.workspace", "core.packs", "core.importers", "core.migrations")
"""Packages that are imported before anything is forked."""


class Ended(NamedTuple):
    """How a command ended."""

    killed: bool
    code: int
    """Its exit code; of a process that was ended by a signal, the number of that, negative."""
    changes: int
    """How many changes it made; of one that was killed, 0."""
    took_s: float
    """From its first change to its end."""
    said: str
    """On standard error."""


class Launcher:
    """Starts commands of `winnow`, each in a process of its own, and kills them when told."""

    def __enter__(self) -> Launcher:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killing"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "WINNOW_USER": USER, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._pipes[0].close()  # it has nothing more to do
        self._process.wait()
        self._pipes[1].close()

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def run(
        self, command: Sequence[str], *, before: int = NEVER, after_s: float | None = None, stdin: str = ""
    ) -> Ended:
        """Run a command to its end.

        Args:
            command: what follows `winnow`.
            before: it is killed right before this change, from 1.
            after_s: it is killed so many seconds after its first change.
            stdin: what it may read.
        """
        there, back = self._pipes
        wish = {"command": list(command), "before": before, "after_s": after_s, "stdin": stdin}
        there.write(json.dumps(wish) + "\n")
        there.flush()
        return Ended(**json.loads(back.readline()))


def chosen(total: int, count: int, seed: int) -> list[int]:
    """Some of the instants 1 to `total`, by a seed: the last one among them, where most is at stake."""
    others = random.Random(seed).sample(range(1, total), min(count, total) - 1)
    return sorted({*others, total})


def fresh_copy(folder: Path, to: Path) -> Path:
    """A copy of a workspace that nobody has open, in place of what is at `to`."""
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*-shm"))


def unsound(folder: Path) -> list[str]:
    """What is wrong with the database files of a workspace, as SQLite sees it. The first look recovers its journal."""
    found = []
    for path in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(path)) as db:
            try:
                found += [
                    f"{path.name}: {row}" for (row,) in db.execute("PRAGMA integrity_check") if row != "ok"
                ]
                found += [f"{path.name}: {row}" for row in db.execute("PRAGMA foreign_key_check")]
            except sqlite3.DatabaseError as e:
                found.append(f"{path.name}: {e}")
    return found


# -- in the process that forks ----------------------------------------------------------------------


def main() -> None:
    """Fork for each wish that is read, and answer how it ended."""
    _warm_up()
    for line in sys.stdin:
        wish = json.loads(line)
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as given:
            given.write(wish["stdin"].encode())
            given.seek(0)
            pid = os.fork()
            if pid == 0:
                os.dup2(given.fileno(), 0)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(errors.fileno(), 2)
                signal.alarm(PATIENCE_S)
                _suffer(wish["command"], wish["before"], writing)
            os.close(writing)
            ended = _watched(pid, reading, wish["after_s"])
            errors.seek(0)
            said = errors.read().decode(errors="replace")
        sys.stdout.write(json.dumps({**ended, "said": said}) + "\n")
        sys.stdout.flush()


def _warm_up() -> None:
    for name in WARM:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    gc.freeze()  # a fork that looks for rubbish in all of this would have to copy it


def _watched(pid: int, reading: int, after_s: float | None) -> dict[str, object]:
    with open(reading, "rb") as told:
        first = told.readline()  # comes with its first change; nothing where it ends before
        began = time.monotonic()
        if first and after_s is not None:
            time.sleep(after_s)
            os.kill(pid, signal.SIGKILL)
        changes = told.readline()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return {
        "killed": code == -signal.SIGKILL,
        "code": code,
        "changes": int(changes or 0),
        "took_s": time.monotonic() - began,
    }


# -- in the process that is killed ------------------------------------------------------------------


def _suffer(command: Sequence[str], before: int, telling: int) -> NoReturn:
    change, seen = _counting(before, telling)
    connections: list[sqlite3.Connection] = []

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and _to_write(details) and not _of_python(details[0])):
            change()

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connections.append(connection := connect(*arguments, **options))
        connection.set_trace_callback(lambda sql: change() if WRITES.match(sql) else None)
        return connection

    connect = sqlite3.connect
    sqlite3.connect = traced
    sys.addaudithook(hear)
    sys.argv = ["winnow", *command]
    code = 1
    try:
        runpy.run_module("core", run_name="__main__", alter_sys=True)
    except SystemExit as e:
        code = int(e.code or 0)
    except BaseException:  # noqa: BLE001  # whatever it is, it is told
        traceback.print_exc()
    for connection in connections:  # as at the end of any process, which would take a second here
        connection.close()
    os.write(telling, b"%d\n" % seen())
    os._exit(code)


def _counting(before: int, telling: int) -> tuple[Callable[[], None], Callable[[], int]]:
    count = itertools.count(1)
    seen = 0

    def change() -> None:
        nonlocal seen
        seen = next(count)
        if seen == 1:
            os.write(telling, b"first\n")
        if seen >= before:
            os.kill(os.getpid(), signal.SIGKILL)

    return change, lambda: seen


def _to_write(details: tuple[Any, ...]) -> bool:
    _, mode, flags = details
    return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def _of_python(path: object) -> bool:
    return isinstance(path, int) or "__pycache__" in str(path) or str(path).startswith("/dev/")


if __name__ == "__main__":
    main()
