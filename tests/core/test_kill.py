"""kill -9 of a run amid its calls, then the same command: the same state as an undisturbed run.

A few seeded cases here; `make soak` runs many and records them in docs/soak.md.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from core.settings import Endpoint
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_tasks, ticking
from tests.stub_process import PATIENCE_S, POLL_S, ROOT, reset, stats, stub_process
from tests.stub_server import TEACHER

TASKS, GROUP_SIZE, BATCH_SIZE = 64, 5, 24
CONCURRENCY = 4
"""Of each of the two endpoints."""
IN_FLIGHT = 2 * CONCURRENCY
"""At most so many calls are under way when a kill comes: both endpoints are asked side by side."""
KILLS = 2
"""In one case."""
SEEDS = range(5)
LAST_WRITES = (1, 2, 3, 5, 8, 12)
"""Before the how manieth write from the end the process dies."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX signal")]


def prepare(folder: Path, address: str, tasks: int) -> list[str]:
    """A workspace with tasks, a rollout and an extraction endpoint; gives the command that runs it."""
    workspace = Workspace(folder, clock=ticking())
    add_tasks(workspace, make_tasks(tasks))
    add_stub(workspace, address, concurrency=CONCURRENCY)
    teacher = Endpoint(
        name="teacher", base_url=address, model=TEACHER, context_length=16_000, concurrency=CONCURRENCY
    )
    workspace.models.save(teacher, "test")
    command = [sys.executable, "-m", "core", "run", "--endpoint", "stub", "--extraction-endpoint", "teacher"]
    command += ["--group-size", str(GROUP_SIZE), "--batch-size", str(BATCH_SIZE), "--max-tokens", "32"]
    return [*command, "--workspace", str(folder)]


def finish(command: list[str]) -> None:
    """Let a run end; 1 says that something was set aside."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr


class Calm(NamedTuple):
    """The undisturbed run."""

    dump: str
    calls: int


def run_calmly(folder: Path, address: str, tasks: int) -> Calm:
    reset(address)
    finish(prepare(folder, address, tasks))
    return Calm(Workspace(folder).store.dump(), stats(address)["calls"])


class Kill(NamedTuple):
    """What a kill found."""

    answered: int
    """Calls that the stub had answered by then, since the run was first started."""
    done: int
    """Groups that were sampled and written down."""
    waiting: int
    taught: int
    """Informative groups that the model had contrasted."""
    informative: int
    ended: bool
    """Whether the run was written down as done: the kill came after its last transaction."""

    @property
    def amid_sampling(self) -> bool:
        return self.done > 0 and self.waiting > 0

    @property
    def amid_teaching(self) -> bool:
        return not self.ended and self.taught > 0


class Case(NamedTuple):
    """A run that was killed and started again until it ended."""

    seed: int
    kills: tuple[Kill, ...]
    asked_again: int
    """Replicates that were asked for more than once, each further time counted."""
    dump: str

    @property
    def may_be_asked_again(self) -> int:
        return IN_FLIGHT * len(self.kills)


def run_with_kills(folder: Path, address: str, tasks: int, calls: int, seed: int) -> Case:
    """Start a run, kill it once a seeded number of its calls are answered, and again; then let it end.

    Args:
        folder: of the workspace to be made.
        address: of the stub.
        tasks: how many.
        calls: of the undisturbed run; the kills are spread over all but the last of them, one in each equal part (of
            the last ones one hears too late: the run has ended by then).
        seed: of the kills.
    """
    reset(address)
    command = prepare(folder, address, tasks)
    kills: list[Kill] = []
    rng, last = random.Random(seed), calls - 4 * IN_FLIGHT
    for part in range(KILLS):
        target = rng.randint(1 + last * part // KILLS, last * (part + 1) // KILLS)
        # One more at least than the runs before have got, lest a kill comes before this one has made a call.
        if not _killed_at(command, address, max(target, stats(address)["answered"] + 1)):
            break
        kills.append(_found(folder, _settled(address)))
    finish(command)
    return Case(seed, tuple(kills), stats(address)["asked_again"], Workspace(folder).store.dump())


def _killed_at(command: list[str], address: str, answered: int) -> bool:
    """Kill the command as soon as so many calls have been answered; False where it ended before."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and stats(address)["answered"] < answered:
            assert time.monotonic() < deadline, f"{answered} calls were not answered in time"
            time.sleep(POLL_S)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return process.returncode == -signal.SIGKILL


def _settled(address: str) -> int:
    """Calls answered, once the stub has done with what the killed process had asked."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := stats(address))["in_flight"]:
        assert time.monotonic() < deadline, "the stub still works on the calls of a killed process"
        time.sleep(POLL_S)
    return int(found["answered"])


def _found(folder: Path, answered: int) -> Kill:
    """Look at a copy: the next start is to find the files exactly as the kill left them."""
    with tempfile.TemporaryDirectory() as name:
        copy = shutil.copytree(folder, Path(name) / "copy", ignore=shutil.ignore_patterns("*-shm"))
        [run] = Workspace(copy).store.runs.newest()
        with closing(sqlite3.connect(copy / "winnow.db")) as db:
            [taught] = db.execute("SELECT count(*) FROM groups WHERE contrast <> ''").fetchone()
    tally = run.tally
    done = tally.total - tally.waiting
    return Kill(answered, done, tally.waiting, taught, tally.informative, run.status == "done")


def differences(dump: str, calm: str) -> list[str]:
    """Lines that only one of two dumps has."""
    a, b = set(dump.splitlines()), set(calm.splitlines())
    return [f"killed: {line}" for line in sorted(a - b)] + [f"calm: {line}" for line in sorted(b - a)]


class Seen(NamedTuple):
    calm: Calm
    cases: tuple[Case, ...]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("kill")
    with stub_process(folder) as address:
        calm = run_calmly(folder / "calm", address, TASKS)
        cases = [run_with_kills(folder / str(s), address, TASKS, calm.calls, s) for s in SEEDS]
    return Seen(calm, tuple(cases))


def test_a_killed_run_ends_in_the_state_of_an_undisturbed_one(seen: Seen) -> None:
    for case in seen.cases:
        assert differences(case.dump, seen.calm.dump) == [], f"seed {case.seed}: {case.kills}"
        assert case.dump == seen.calm.dump, "not even a row twice"


def test_only_what_was_in_flight_is_asked_for_again(seen: Seen) -> None:
    for case in seen.cases:
        assert case.asked_again <= case.may_be_asked_again, f"seed {case.seed}: {case.kills}"


def test_every_case_was_killed_twice_amid_its_sampling_and_amid_its_lessons(seen: Seen) -> None:
    kills = [kill for case in seen.cases for kill in case.kills]
    assert len(kills) == KILLS * len(SEEDS) == 10
    assert sum(kill.amid_sampling for kill in kills) >= 3, kills
    assert sum(kill.amid_teaching for kill in kills) >= 3, kills


# -- between two writes ---------------------------------------------------------------------------


def test_a_run_that_dies_between_any_two_of_its_last_writes_ends_as_an_undisturbed_one(
    tmp_path: Path,
) -> None:
    """Each write looks at the clock; here a look kills the process, each of the last ones in turn."""
    with stub_process(tmp_path, latency_ms=1) as address:
        calm, looks = tmp_path / "calm", tmp_path / "looks"
        assert _work(calm, address, die_after=10**9, looks=looks) == 0
        total = int(looks.read_text())
        dump = Workspace(calm).store.dump()
        for last in LAST_WRITES:
            folder = tmp_path / str(last)
            assert _work(folder, address, die_after=total - last) in (0, -signal.SIGKILL)
            assert _work(folder, address, die_after=10**9) == 0
            found = Workspace(folder).store.dump()
            assert differences(found, dump) == [], f"killed at the last look but {last - 1} of {total}"


def _work(folder: Path, address: str, die_after: int, looks: Path | None = None) -> int:
    """Work on a small run in a process of its own; gives its exit code."""
    command = [sys.executable, "-m", "tests.core.test_kill", str(folder), address, str(die_after)]
    done = subprocess.run([*command, *([str(looks)] if looks else [])], cwd=ROOT, check=False)
    return done.returncode


def _mortal(die_after: int) -> Callable[[], str]:
    tick, count = ticking(), itertools.count()

    def now() -> str:
        if next(count) >= die_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return tick()

    return now


def main() -> None:
    folder, address, die_after, *looks = sys.argv[1:]
    if not Path(folder).exists():
        workspace = Workspace(Path(folder), clock=ticking())
        add_tasks(workspace, make_tasks(5))
        config = add_stub(workspace, address, context_length=32_000, concurrency=2)
        update = {"extraction_endpoint": config.endpoint, "batch_size": 3}
        workspace.learning.start(config.model_copy(update=update), "test")
    clock, counted = _mortal(int(die_after)), itertools.count()

    def looked_at() -> str:
        next(counted)
        return clock()

    Workspace(Path(folder), clock=looked_at).learning.work("R1", "test")
    if looks:
        Path(looks[0]).write_text(str(next(counted)))


if __name__ == "__main__":
    main()
