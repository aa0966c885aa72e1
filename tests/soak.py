"""`make soak`: the full counts of the kill test and of the fault test; appends what it saw to docs/soak.md."""

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

from tests.core.test_conservation import broken_laws, run_under_faults
from tests.core.test_kill import (
    GROUP_SIZE,
    Calm,
    Case,
    differences,
    run_calmly,
    run_with_kills,
)
from tests.stub_process import stub_process

REPORT = Path(__file__).parents[1] / "docs" / "soak.md"
KILLS_HEAD = "| date | runs | kills | amid sampling | amid lessons | other end state | too much again | never killed | asked again | took |"  # noqa: E501
FAULTS_HEAD = "| date | runs | groups | learned, uninformative, failed | operations | proposed, joined, superseded, quarantined | requests | faults | laws broken | took |"  # noqa: E501


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="that are killed, twice each")
    parser.add_argument("--tasks", type=int, default=64, help="of each of them")
    parser.add_argument("--faulty", type=int, default=200, help="runs under faults and bad manners")
    parser.add_argument(
        "--most-s", type=float, default=float("inf"), help="start no run of either kind after so many seconds"
    )
    options = parser.parse_args()
    wrong = _faulty(options.faulty, options.most_s) + _killed(options.runs, options.tasks, options.most_s)
    return 1 if wrong else 0


def _killed(runs: int, tasks: int, most_s: float) -> int:
    started = time.monotonic()
    wrong: Counter[str] = Counter()
    cases = []
    for case, calm in _cases(runs, tasks):
        wrong.update(_wrong(case, calm))
        cases.append(case)
        sys.stderr.write(f"killed: {len(cases)} of {runs}\n")
        if time.monotonic() - started > most_s:
            break
    if cases:
        what = f"{len(cases)} of {tasks} tasks x {GROUP_SIZE}, {calm.calls} calls"
        _append(KILLS_HEAD, _line(what, cases, wrong), time.monotonic() - started)
    return wrong.total()


def _faulty(runs: int, most_s: float) -> int:
    """Runs under faults: manners and number of retries go by the seed."""
    started = time.monotonic()
    sums: Counter[str] = Counter()
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            manners, retries = (0.0, 0.3, 0.6, 1.0)[seed % 4], (1, 4)[seed // 4 % 2]
            books = run_under_faults(Path(folder) / "workspace", seed, manners, retries)
        for law in (broken := broken_laws(books)):
            sys.stderr.write(f"seed {seed}: {law[:2000]}\n")
        tally, report = books.run.tally, books.run.extraction
        missed = len(report.not_contrasted)
        sums.update(runs=1, groups=tally.total, learned=tally.informative - missed, broken=len(broken))
        sums.update(uninformative=tally.uninformative, failed=tally.failed + missed, asked=books.asked)
        sums.update({k: getattr(report, k) for k in ("suggested", *OPERATIONS)})
        sums.update(faults=sum(books.faults.values()))
        sys.stderr.write(f"faulty: {seed + 1} of {runs}\n")
        if time.monotonic() - started > most_s:
            break
    if sums:
        cells = [sums["runs"], sums["groups"], _three(sums, "learned", "uninformative", "failed")]
        cells += [sums["suggested"], _three(sums, *OPERATIONS), sums["asked"], sums["faults"], sums["broken"]]
        _append(FAULTS_HEAD, cells, time.monotonic() - started)
    return sums["broken"]


OPERATIONS = ("proposed", "joined", "superseded", "quarantined")


def _three(sums: Counter[str], *names: str) -> str:
    return ", ".join(str(sums[name]) for name in names)


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


def _line(what: str, cases: Sequence[Case], wrong: Counter[str]) -> list[object]:
    kills = [kill for case in cases for kill in case.kills]
    again = f"{sum(c.asked_again for c in cases)}, at most {max(c.asked_again for c in cases)} in a run"
    cells: list[object] = [what, len(kills)]
    cells += [sum(k.amid_sampling for k in kills), sum(k.amid_teaching for k in kills)]
    return [*cells, wrong["other end state"], wrong["too much again"], wrong["never killed"], again]


def _append(head: str, cells: Sequence[object], took_s: float) -> None:
    """Put a line below its head in the report."""
    row = f"| {' | '.join(map(str, [f'{datetime.now(UTC):%Y-%m-%d}', *cells, f'{took_s:.0f} s']))} |"
    sys.stderr.write(row + "\n")
    lines = REPORT.read_text(encoding="utf-8").splitlines()
    place = lines.index(head) + 2
    while place < len(lines) and lines[place].startswith("|"):
        place += 1
    lines.insert(place, row)
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
