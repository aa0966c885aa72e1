"""Workers as processes: killed, asked to end, two at once, started by an app that ends; against a stub endpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.job import Job
from core.settings import RunConfig
from core.workspace import Workspace
from tests.braking import SLOW_S, braked
from tests.make import add_stub, add_tasks, make_tasks, ticking
from tests.stub_process import PATIENCE_S, POLL_S, ROOT, reset, stats, stub_process
from tests.stub_server import Fault, StubServer

TASKS, GROUP_SIZE, CONCURRENCY = 12, 4, 3
"""Of a call, where another process has to start meanwhile."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with stub_process(tmp_path_factory.mktemp("stub"), latency_ms=40) as found:
        yield found


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes of a test, ended with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def prepare(folder: Path, address: str) -> tuple[Workspace, RunConfig]:
    workspace = Workspace(folder, clock=ticking())
    add_tasks(workspace, make_tasks(TASKS))
    config = add_stub(workspace, address, concurrency=CONCURRENCY)
    return Workspace(folder), config.model_copy(update={"group_size": GROUP_SIZE})


def enqueue(folder: Path, address: str) -> Workspace:
    workspace, config = prepare(folder, address)
    workspace.jobs.enqueue(workspace.learning.start(config, "test").id, "test")
    return workspace


def process(started: list[subprocess.Popen[str]], folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "core", *words, "--workspace", str(folder)]
    made = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_hears_ctrl_c,  # noqa: PLW1509  # no thread of ours holds a lock that the child needs
    )
    started.append(made)
    return made


def _hears_ctrl_c() -> None:
    """A test run that a script started in the background ignores SIGINT, and its children would inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def winnow(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "core", *words, "--workspace", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(POLL_S)


def job_of(workspace: Workspace) -> Job:
    return workspace.jobs.find("R1")


def amid(address: str, calls: int) -> None:
    until(f"{calls} calls were answered", lambda: stats(address)["answered"] >= calls)


CALLS = 8
"""That are answered before a worker is disturbed."""


def amid_of(stub: StubServer) -> None:
    until(f"{CALLS} calls were answered", lambda: stub.stats()["answered"] >= CALLS)


def test_a_worker_that_is_killed_loses_nothing_and_the_next_one_ends_where_it_would_have(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    with StubServer(latency_s=0.04) as stub:
        calm = enqueue(tmp_path / "calm", stub.base_url)
        assert winnow(calm.folder, "worker", "--once").returncode == 0
        killed = enqueue(tmp_path / "killed", stub.base_url)
        stub.reset()
        with braked(stub, CALLS):
            worker = process(started, killed.folder, "worker")
            amid_of(stub)
            worker.kill()
            worker.wait()
        assert job_of(killed).state == "running"
        done = winnow(killed.folder, "worker", "--once", "--json")
        assert (done.returncode, json.loads(done.stdout)[0]["state"]) == (0, "done"), done.stderr
        assert job_of(killed).attempts == 2
        assert killed.store.dump() == calm.store.dump()
        assert stub.stats()["asked_again"] <= CONCURRENCY


def test_a_worker_that_is_asked_to_end_gives_its_job_back_and_pays_for_nothing_twice(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    with StubServer(latency_s=0.04) as stub:
        workspace = enqueue(tmp_path / "w", stub.base_url)
        with braked(stub, CALLS):
            worker = process(started, workspace.folder, "worker")
            amid_of(stub)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE_S) == 0
        assert (job_of(workspace).state, job_of(workspace).worker) == ("waiting", "")
        assert winnow(workspace.folder, "worker", "--once").returncode == 0
        assert (job_of(workspace).state, stub.stats()["asked_again"]) == ("done", 0)


def test_two_workers_at_once_are_one_too_many(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    with StubServer(latency_s=SLOW_S) as stub:
        workspace = enqueue(tmp_path / "w", stub.base_url)
        first = process(started, workspace.folder, "worker", "--idle-exit", "0")
        until("a call was made", lambda: stub.stats()["calls"] > 0)
        second = winnow(workspace.folder, "worker", "--once")
        assert second.returncode == 3
        assert "one at a time" in second.stderr
        stub.latency_s = 0
        assert first.wait(PATIENCE_S) == 0
        assert (job_of(workspace).state, stub.stats()["asked_again"]) == ("done", 0)


def test_a_pause_lets_calls_come_home_and_resuming_makes_none_of_them_again(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    with StubServer(latency_s=0.5) as stub:  # the whole run takes longer than it takes a worker to hear
        workspace = enqueue(tmp_path / "w", stub.base_url)
        process(started, workspace.folder, "worker")
        until("a call was answered", lambda: stub.stats()["answered"] > 0)
        workspace.jobs.pause("R1", "ann")
        until("the job paused", lambda: job_of(workspace).state == "paused")
        assert stub.stats()["in_flight"] == 0
        assert workspace.store.runs.get("R1").tally.waiting > 0
        stub.latency_s = 0
        workspace.jobs.resume("R1", "ann")
        until("the job is done", lambda: job_of(workspace).state == "done")
        assert stub.stats()["asked_again"] == 0


def test_work_can_be_paused_while_the_endpoint_says_to_wait(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    wait = Fault("status", 429, {"Retry-After": "30"})
    with StubServer(faults=[wait] * 200) as stub:
        workspace = enqueue(tmp_path / "w", stub.base_url)
        process(started, workspace.folder, "worker")
        until("the endpoint said to wait", lambda: stub.stats()["faults"].get("429", 0) > 0)
        asked = time.monotonic()
        workspace.jobs.pause("R1", "ann", now=True)
        until("the job paused", lambda: job_of(workspace).state == "paused")
        assert time.monotonic() - asked < 20, "it does not sit out the 30 seconds"


def test_what_is_discarded_leaves_no_trace_but_the_events(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    with StubServer(latency_s=0.1) as stub:
        workspace = enqueue(tmp_path / "w", stub.base_url)
        process(started, workspace.folder, "worker")
        until("some groups are finished", lambda: stub.stats()["answered"] > 2 * GROUP_SIZE)
        stub.latency_s = SLOW_S
        done = winnow(workspace.folder, "jobs", "cancel", "R1", "--discard")
        assert done.returncode == 0, done.stderr
        until("the job is cancelled", lambda: job_of(workspace).state == "cancelled")
    left = {line.split(" ", 1)[0] for line in workspace.store.dump().splitlines()}
    assert not left & {"groups", "rollouts", "trajectories", "proposals", "batches", "quarantine"}
    kinds = [e.kind for e in workspace.store.events.newest() if e.subject in ("R1", "J1")]
    assert kinds == ["run.discarded", "job.cancelled", "run.created"]


def test_a_worker_that_the_app_started_outlives_the_app(tmp_path: Path, address: str) -> None:
    workspace = enqueue(tmp_path / "w", address)
    reset(address)
    script = (
        "import core.worker, pathlib, sys; from core.workspace import Workspace\n"
        "core.worker.IDLE_EXIT_S = 0\n"
        "Workspace(pathlib.Path(sys.argv[1])).ensure_worker()"
    )
    subprocess.run([sys.executable, "-c", script, str(workspace.folder)], cwd=ROOT, check=True)
    until("the job is done", lambda: job_of(workspace).state == "done")
    assert stats(address)["asked_again"] == 0


def test_a_run_follows_the_worker_that_there_is_and_ends_as_it_does(
    tmp_path: Path, address: str, started: list[subprocess.Popen[str]]
) -> None:
    workspace, config = prepare(tmp_path / "w", address)
    reset(address)
    process(started, workspace.folder, "worker")
    words = ["run", "--endpoint", "stub", "-g", str(GROUP_SIZE), "--max-tokens", "32"]
    from core.worker import alive

    until("a worker runs", lambda: alive(workspace.folder))
    done = winnow(workspace.folder, *words, "--json")
    assert done.returncode == 0, done.stderr
    assert "A worker runs already" in done.stderr
    assert json.loads(done.stdout)["status"] == "done"
    assert workspace.learning.plan(config).finished, "it is the run that was asked for"
    assert job_of(workspace).attempts == 1


def test_ctrl_c_on_a_run_that_follows_stops_nothing_and_on_a_run_that_works_pauses_it(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    words = ["run", "--endpoint", "stub", "-g", str(GROUP_SIZE), "--max-tokens", "32"]
    with StubServer(latency_s=SLOW_S) as stub:
        workspace, _ = prepare(tmp_path / "w", stub.base_url)
        works = process(started, workspace.folder, *words)
        until("a call was made", lambda: stub.stats()["calls"] > 0)
        follows = process(started, workspace.folder, *words)
        assert follows.stdout
        assert "A worker runs already" in follows.stdout.readline()
        follows.send_signal(signal.SIGINT)
        said, _ = follows.communicate(timeout=PATIENCE_S)
        assert follows.returncode == 3
        assert "winnow jobs pause J1" in said
        assert works.poll() is None
        works.send_signal(signal.SIGINT)
        assert works.wait(PATIENCE_S) == 3
        assert job_of(workspace).state == "paused"
        stub.latency_s = 0
        assert winnow(workspace.folder, *words).returncode == 0, "the same command goes on"


def test_a_run_that_was_killed_is_finished_by_a_worker(
    tmp_path: Path, address: str, started: list[subprocess.Popen[str]]
) -> None:
    workspace, _ = prepare(tmp_path / "w", address)
    reset(address)
    run = process(started, workspace.folder, "run", "--endpoint", "stub", "-g", "4", "--max-tokens", "32")
    amid(address, 4)
    run.kill()
    run.wait()
    assert winnow(workspace.folder, "worker", "--once").returncode == 0
    assert job_of(workspace).state == "done"
