"""`make bench`: what takes how long, each beside its bound. Timings never decide a test."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_group, make_tasks
from tests.stub_server import StubServer

ROOT = Path(__file__).parents[1]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    rows = []
    helped = min(
        seconds(
            lambda: subprocess.run(
                [sys.executable, "-m", "core", "--help"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True
            )
        )
        for _ in range(5)
    )
    rows.append(("winnow --help", f"{helped:.2f} s", "0.5 s"))
    with tempfile.TemporaryDirectory() as folder, StubServer(latency_s=0.05) as stub:
        stub.keeps_requests = False
        workspace = Workspace(Path(folder))
        tasks = make_tasks(1000)
        rows.append(("add 1,000 tasks", f"{seconds(lambda: add_tasks(workspace, tasks)):.2f} s", "-"))
        config = add_stub(workspace, stub.base_url, concurrency=64).model_copy(
            update={"group_size": 5, "limit": 64}
        )
        run = workspace.learning.start(config, "bench")
        took = seconds(lambda: workspace.learning.work(run.id, "bench"))
        rows.append(("64 tasks x 5, 50 ms latency, concurrency 64, evidence extractor", f"{took:.2f} s", "-"))
        group = make_group(*[0.0, 1.0] * 4, id=f"{run.id}-0001", run_id=run.id)
        saved = seconds(lambda: [workspace.store.runs.save_group(group) for _ in range(200)]) / 200
        rows.append(("save a group of 8", f"{saved * 1000:.1f} ms", "8 ms"))
        listed = seconds(lambda: workspace.store.runs.group_rows(run.id, limit=50))
        rows.append(("list 50 groups", f"{listed * 1000:.1f} ms", "20 ms"))
    width = max(len(name) for name, _, _ in rows)
    for name, found, bound in rows:
        sys.stdout.write(f"{name.ljust(width)}  {found:>9}  bound {bound}\n")


if __name__ == "__main__":
    main()
