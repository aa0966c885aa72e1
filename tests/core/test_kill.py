"""kill -9 of a run at random instants, then the same command: the same state as an undisturbed run.

A few seeded cases here; `make soak` runs many and records them in docs/soak.md.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_tasks, ticking

ROOT = Path(__file__).parents[2]
TASKS, GROUP_SIZE = 16, 5

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kill -9 is a POSIX signal")]


@contextmanager
def stub_process(folder: Path, latency_ms: int = 30) -> Iterator[str]:
    """A stub server that outlives the runs that are killed; gives its address."""
    port_file = folder / "port"
    command = [sys.executable, "-m", "tests.stub_server", "--port-file", str(port_file)]
    process = subprocess.Popen([*command, "--latency-ms", str(latency_ms), "--for-s", "600"], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text()):
            assert time.monotonic() < deadline, "the stub server did not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port_file.read_text().strip()}/v1"
    finally:
        process.kill()
        process.wait()


def stats(address: str, reset: bool = False) -> dict[str, Any]:
    with urllib.request.urlopen(address.removesuffix("/v1") + "/stub/stats") as reply:
        found: dict[str, Any] = json.load(reply)
    if reset:
        urllib.request.urlopen(
            urllib.request.Request(address.removesuffix("/v1") + "/stub/reset", method="POST")
        )
    return found


def prepare(folder: Path, address: str, tasks: int = TASKS) -> list[str]:
    """A workspace with tasks and an endpoint; gives the command that runs it."""
    workspace = Workspace(folder, clock=ticking())
    add_tasks(workspace, make_tasks(tasks))
    add_stub(workspace, address, concurrency=16)
    words = [
        "run",
        "--endpoint",
        "stub",
        "-g",
        str(GROUP_SIZE),
        "--max-tokens",
        "32",
        "--workspace",
        str(folder),
    ]
    return [sys.executable, "-m", "core", *words]


def finish(command: list[str]) -> None:
    """Let a run end; 1 says that something was set aside, such as a finding without advice."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr


class Killed(NamedTuple):
    kills: int
    asked_again: int
    dump: str


def run_with_kills(
    command: list[str], folder: Path, address: str, rng: random.Random, longest_s: float
) -> Killed:
    """Start the run, kill it at a random instant, up to three times; then let it end."""
    stats(address, reset=True)
    kills = 0
    for _ in range(3):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=rng.uniform(0.2, longest_s))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    finish(command)
    return Killed(kills, stats(address)["asked_again"], Workspace(folder).store.dump())


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_run_ends_in_the_state_of_an_undisturbed_one(tmp_path: Path, seed: int) -> None:
    with stub_process(tmp_path) as address:
        command = prepare(tmp_path / "calm", address)
        started = time.monotonic()
        finish(command)
        took = time.monotonic() - started
        calm = Workspace(tmp_path / "calm").store.dump()
        command = prepare(tmp_path / "killed", address)
        killed = run_with_kills(command, tmp_path / "killed", address, random.Random(seed), took)
    assert killed.dump == calm
    assert killed.asked_again <= 16 * killed.kills, "only what was in flight is asked for again"
