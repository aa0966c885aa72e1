"""`make soak`: the full counts of the kill test; appends what it saw to docs/soak.md."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.core.test_kill import (
    CONCURRENCY,
    GROUP_SIZE,
    KILLS,
    Calm,
    Case,
    differences,
    run_calmly,
    run_with_kills,
)
from tests.stub_process import stub_process

REPORT = Path(__file__).parents[1] / "docs" / "soak.md"
HEAD = f"""# Soak

What `make soak` saw, a line for each time. Against a stub endpoint in a process of its own, a run with a rollout and
an extraction endpoint is done once undisturbed. Then, for each seed, the same command in a fresh workspace is killed
(`SIGKILL`) as soon as a seeded number of its calls has been answered, started again and killed again, one to {KILLS}
times, and at last left to end.

- *other end state*: runs whose `store.dump()` differs from the undisturbed one. Must be 0.
- *too much again*: runs that asked again for more replicates than can have been in flight, {CONCURRENCY} for each
  kill. Must be 0.
- *never killed*: runs that ended before their kill. Must be 0.
- *kills*: how many, and what they found: a run amid its sampling (of these, with some groups done and some waiting),
  amid its extraction, or written down as done.

| date | runs | kills | amid sampling (some groups done) | amid extraction | done | other end state | too much again | never killed | asked again | took |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""  # noqa: E501


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument(
        "--most-s", type=float, default=float("inf"), help="start no run after so many seconds"
    )
    options = parser.parse_args()
    started = time.monotonic()
    wrong: Counter[str] = Counter()
    cases = []
    for case, calm in _cases(options.runs, options.tasks):
        wrong.update(_wrong(case, calm))
        cases.append(case)
        sys.stderr.write(f"{len(cases)} of {options.runs}\n")
        if time.monotonic() - started > options.most_s:
            break
    what = f"{len(cases)} of {options.tasks} tasks x {GROUP_SIZE}, {calm.calls} calls"
    line = _line(what, cases, wrong, time.monotonic() - started)
    if not REPORT.exists():
        REPORT.write_text(HEAD, encoding="utf-8")
    with REPORT.open("a", encoding="utf-8") as report:
        report.write(line)
    sys.stderr.write(line)
    return 1 if wrong else 0


def _cases(runs: int, tasks: int) -> Iterator[tuple[Case, Calm]]:
    with tempfile.TemporaryDirectory() as name, stub_process(Path(name), for_s=24 * 3600) as address:
        calm = run_calmly(Path(name) / "calm", address, tasks)
        for seed in range(runs):
            folder = Path(name) / str(seed)
            yield run_with_kills(folder, address, tasks, calm.calls, seed), calm
            shutil.rmtree(folder)


def _wrong(case: Case, calm: Calm) -> list[str]:
    """Names of what must not be, each with its details on standard error."""
    found = {
        "other end state": differences(case.dump, calm.dump) or (case.dump != calm.dump and ["a row twice"]),
        "too much again": case.asked_again > case.may_be_asked_again and [f"{case.asked_again} replicates"],
        "never killed": not case.kills and ["it ended before"],
    }
    for name, details in found.items():
        for detail in details or []:
            sys.stderr.write(f"seed {case.seed}, {case.kills}: {name}: {detail[:2000]}\n")
    return [name for name, details in found.items() if details]


def _line(what: str, cases: Sequence[Case], wrong: Counter[str], took_s: float) -> str:
    kills = [kill for case in cases for kill in case.kills]
    stages = Counter(kill.stage for kill in kills)
    amid_groups = sum(kill.amid_groups for kill in kills)
    again = f"{sum(c.asked_again for c in cases)}, at most {max(c.asked_again for c in cases)} in a run"
    cells = [f"{datetime.now(UTC):%Y-%m-%d}", what, len(kills), f"{stages['sampling']} ({amid_groups})"]
    cells += [stages["extraction"], stages["after the end"]]
    cells += [wrong["other end state"], wrong["too much again"], wrong["never killed"], again]
    return f"| {' | '.join(map(str, cells))} | {took_s:.0f} s |\n"


if __name__ == "__main__":
    sys.exit(main())
