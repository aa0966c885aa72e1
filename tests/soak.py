"""`make soak`: the full counts of the kill test; appends what it saw to docs/soak.md."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from core.workspace import Workspace
from tests.core.test_kill import finish, prepare, run_with_kills, stub_process

REPORT = Path(__file__).parents[1] / "docs" / "soak.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--tasks", type=int, default=64)
    options = parser.parse_args()
    wrong = kills = asked_again = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, stub_process(Path(folder)) as address:
        command = prepare(Path(folder) / "calm", address, options.tasks)
        began = time.monotonic()
        finish(command)
        took = time.monotonic() - began
        calm = Workspace(Path(folder) / "calm").store.dump()
        for seed in range(options.runs):
            command = prepare(Path(folder) / str(seed), address, options.tasks)
            killed = run_with_kills(command, Path(folder) / str(seed), address, random.Random(seed), took)
            kills += killed.kills
            asked_again += killed.asked_again
            if killed.dump != calm or killed.asked_again > 16 * killed.kills:
                wrong += 1
                sys.stderr.write(f"seed {seed}: {killed.kills} kills ended in another state\n")
            sys.stderr.write(f"\r{seed + 1} of {options.runs}")
    line = (
        f"| {datetime.now(UTC):%Y-%m-%d} | kill -9 of a run | {options.runs} runs of {options.tasks} tasks x 5 "
        f"| {kills} | {wrong} | "
        f"{asked_again} replies asked for again, at most 16 for each kill | {time.monotonic() - started:.0f} s |\n"
    )
    if not REPORT.exists():
        head = "| date | what | how much | kills | other end state | besides | took |\n|---|---|---|--:|--:|---|--:|\n"
        REPORT.write_text("# Soak\n\nWhat `make soak` saw.\n\n" + head, encoding="utf-8")
    with REPORT.open("a", encoding="utf-8") as report:
        report.write(line)
    sys.stderr.write("\n" + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
