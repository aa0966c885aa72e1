"""Kill a command at an instant that is chosen by a seed: before its nth change on disk, or after a share of its time.

    command = ["core", "publish", "-m", "x", "--workspace", str(folder)]     # a module that `python -m` can run
    total = instants(command)                       # on a copy: it runs to its end, and the changes are counted
    for nth in chosen(total, 10, seed=1):
        kill_before(command, nth)                   # on a fresh copy each: dies right before its nth change
    kill_after(command, 0.3)                        # dies 0.3 s after its first change, wherever it is then

A change is a statement that writes to an SQLite file (BEGIN, COMMIT and VACUUM among them), a file that is opened to be
written, and a file that is renamed, linked or removed. Nothing of what is killed has to know of it: this module starts
it, listening to SQLite's trace and to Python's audit events. After each kill the state must be the old or the new one;
`unsound` says whether the files of a workspace can be used.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import runpy
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120.0
"""A command that runs so long hangs."""
NEVER = 10**9

WRITES = re.compile(
    r"\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|VACUUM"
    r"|PRAGMA\s+(wal_checkpoint|journal_mode))\b",
    re.IGNORECASE,
)
CHANGES = {"os.rename", "os.link", "os.remove", "os.rmdir", "os.truncate"}


def instants(command: Sequence[str], *, stdin: bytes = b"") -> int:
    """Run a command to its end; gives how many changes it makes.

    Args:
        command: a module and its arguments.
        stdin: what it may read.
    """
    done = subprocess.run(
        _wrapped(command, NEVER), cwd=ROOT, input=stdin, capture_output=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return int(done.stderr.rpartition(b"instants: ")[2])


def kill_before(command: Sequence[str], nth: int, *, stdin: bytes = b"") -> bool:
    """Run a command that dies right before its nth change, from 1; False where it ended before."""
    done = subprocess.run(
        _wrapped(command, nth), cwd=ROOT, input=stdin, capture_output=True, check=False, timeout=PATIENCE_S
    )
    return done.returncode == -signal.SIGKILL


def kill_after(command: Sequence[str], seconds: float, *, stdin: bytes = b"") -> bool:
    """Run a command and kill it so many seconds after its first change; False where it ended before."""
    process = subprocess.Popen(
        _wrapped(command, NEVER), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        process.stdin.write(stdin)
        process.stdin.close()
        process.stderr.read(len(FIRST))  # comes with its first change, or when it ends
        time.sleep(seconds)
    finally:
        process.send_signal(signal.SIGKILL)
        process.stderr.close()
        process.wait()
    return process.returncode == -signal.SIGKILL


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


# -- in the process that is killed ------------------------------------------------------------------

FIRST = b"first\n"


def _wrapped(command: Sequence[str], nth: int) -> list[str]:
    return [sys.executable, "-m", "tests.killing", str(nth), *command]


def _counting(nth: int) -> tuple[Callable[[], None], Callable[[], int]]:
    count = itertools.count(1)
    seen = 0

    def change() -> None:
        nonlocal seen
        seen = next(count)
        if seen == 1:
            os.write(2, FIRST)
        if seen >= nth:
            os.kill(os.getpid(), signal.SIGKILL)

    return change, lambda: seen


def main() -> None:
    nth, module, *arguments = sys.argv[1:]
    change, seen = _counting(int(nth))

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and _to_write(details) and not _of_python(details[0])):
            change()

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda sql: change() if WRITES.match(sql) else None)
        return connection

    connect = sqlite3.connect
    sqlite3.connect = traced
    sys.addaudithook(hear)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        os.write(2, b"instants: %d\n" % seen())


def _to_write(details: tuple[Any, ...]) -> bool:
    _, mode, flags = details
    return bool(set(mode or "") & set("wax+")) or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def _of_python(path: object) -> bool:
    return isinstance(path, int) or "__pycache__" in str(path) or str(path).startswith("/dev/")


if __name__ == "__main__":
    main()
