"""Each command that changes a workspace, killed at hundreds of seeded instants: `python -m tests.soak_care`.

Half of the kills come right before a change on disk, spread over all of them, and half at random times; where a command
makes fewer changes than that, more come at random times. What must hold afterwards: `tests.ordeals`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.killing import Launcher
from tests.ordeals import ORDEALS, Suffered, suffer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each command")
    parser.add_argument("--only", choices=ORDEALS, action="append", help="these commands")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name, Launcher() as launcher:
        folder = Path(name)
        # The doctor also looks at the models and the trust of this machine, which are no part of this.
        os.environ |= {"WINNOW_CACHE": str(folder / "cache"), "WINNOW_TRUST": str(folder / "trust.toml")}
        for command in options.only or ORDEALS:
            began = time.monotonic()
            (folder / command).mkdir()
            suffered = suffer(
                command, folder / command, launcher, at_changes=options.kills // 2, kills=options.kills,
                seed=options.seed,
            )  # fmt: skip
            sys.stdout.write(_line(command, suffered, time.monotonic() - began))
            sys.stdout.flush()
            wrong += len(suffered.wrong)
    return 1 if wrong else 0


def _line(command: str, suffered: Suffered, took_s: float) -> str:
    """A row of the table in docs/soak.md, and below it what was wrong."""
    found = suffered.found
    cells = [command, suffered.changes, found["killed"], found["ended before"], found["old"], found["new"]]
    cells += [len(suffered.wrong), f"{took_s:.0f} s"]
    return "".join(f"{line}\n" for line in [f"| {' | '.join(map(str, cells))} |", *suffered.wrong])


if __name__ == "__main__":
    sys.exit(main())
