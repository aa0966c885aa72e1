"""Backup, restore and redaction, killed at many seeded instants: `python -m tests.soak_care --kills 50`.

For each command the kills are spread over all changes that it makes on disk, and as many again come at random times.
After each, the files must be sound and the state the old or the new one; the same command must then come to its end.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from core.workspace import Workspace
from core.workspace.care import Care
from tests.core.test_backup import log_free
from tests.core.test_redact import SECRET, in_files, plant, state
from tests.killing import chosen, fresh_copy, instants, kill_after, kill_before, unsound
from tests.make import publish, ticking

LONGEST_S = 1.0
"""Of the random times after the first change."""


class Case(NamedTuple):
    """A command and the workspace that it is tried on."""

    name: str
    base: Path
    command: Sequence[str]
    stdin: bytes
    seen: Callable[[Path], tuple[str, ...]]
    """What is there afterwards, in a form that can be compared."""
    done: Callable[[Path], bool]
    """Whether the command came to its end, and nothing is left to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="of each command and kind")
    parser.add_argument("--only", choices=("restore", "redact", "backup"), help="one of the commands")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for case in _cases(Path(name)):
            if options.only not in (None, case.name):
                continue
            wrong += _killed(case, Path(name) / "copy", options.kills, options.seed)
    return 1 if wrong else 0


def _cases(folder: Path) -> list[Case]:
    base = Workspace(folder / "base", clock=ticking())
    plant(base, SECRET)
    made = Care(base.folder, ticking()).backup(folder / "b.zip", "ann")
    publish(base, "A lesson that came after the backup.")
    base.store.tasks._database.close()
    copy = str(folder / "copy")
    return [
        Case(
            "restore",
            base.folder,
            ["core", "restore", str(made.path), "--workspace", copy],
            b"",
            _dump,
            lambda _: True,
        ),
        Case(
            "redact",
            base.folder,
            ["core", "redact", "-", "--yes", "--workspace", copy],
            SECRET.encode(),
            state,
            lambda found: not in_files(found, SECRET),
        ),
        Case("backup", base.folder, ["core", "backup", "--workspace", copy], b"", _dump, _backups_are_whole),
    ]


def _dump(folder: Path) -> tuple[str, ...]:
    return tuple(log_free(Workspace(folder).store.dump()))


def _backups_are_whole(folder: Path) -> bool:
    backups = list((folder / "backups").glob("winnow-*.zip"))
    for path in backups:
        with tempfile.TemporaryDirectory() as name:
            Care(Path(name) / "w", ticking()).restore(path, "ann")
    return bool(backups)


def _killed(case: Case, copy: Path, kills: int, seed: int) -> int:
    old = case.seen(fresh_copy(case.base, copy))
    total = instants(case.command, stdin=case.stdin)
    new = case.seen(copy)
    found: Counter[str] = Counter()
    rng = random.Random(seed)
    for nth in [*chosen(total, kills, seed), *(None for _ in range(kills))]:
        fresh_copy(case.base, copy)
        if nth is not None:
            killed = kill_before(case.command, nth, stdin=case.stdin)
        else:
            killed = kill_after(case.command, rng.uniform(0, LONGEST_S), stdin=case.stdin)
        found["killed" if killed else "ended before"] += 1
        now = case.seen(copy)
        found["old" if now == old else "new" if now == new else "NEITHER"] += 1
        found["UNSOUND"] += bool(unsound(copy))
        instants(case.command, stdin=case.stdin)
        found["NOT FINISHED"] += case.seen(copy) != new or not case.done(copy)
    sys.stdout.write(f"{case.name}, {total} changes: {dict(found)}\n")
    return found["NEITHER"] + found["UNSOUND"] + found["NOT FINISHED"]


if __name__ == "__main__":
    sys.exit(main())
