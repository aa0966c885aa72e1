"""Work that is measured in a process of its own: `python -m tests.bench.child NAME '{"argument": ...}'`.

Each function does its work and returns what it measured; `run` calls one in a fresh process.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.stub_process import ROOT, reset
from tests.stub_server import kind_of

if TYPE_CHECKING:
    from core.rollout import Rollout

Found = dict[str, Any]
STAGES = ("rollout", "summarise", "contrast", "consolidate")


def run(name: str, **arguments: Any) -> Found:
    """Call a function of this module in a fresh process."""
    command = [sys.executable, "-m", "tests.bench.child", name, json.dumps(arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def measured(found: Found) -> Iterator[None]:
    """Wall clock and CPU seconds of this process (its children excluded) while the block runs."""
    before, started = os.times(), time.perf_counter()
    yield
    after = os.times()
    found["wall_s"] = time.perf_counter() - started
    found["cpu_s"] = after.user + after.system - before.user - before.system


def peak_mb() -> float:
    """The most memory that this process ever held."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


# -- a run ----------------------------------------------------------------------------------------


def learn(
    folder: str,
    address: str,
    tasks: int,
    group_size: int,
    concurrency: int,
    batch_size: int = 1000,
    max_tokens: int = 256,
    profile: str = "",
) -> Found:
    """One epoch with all three LLM stages, after a run of one task that loads what is imported on the way."""
    from core.workspace import Workspace

    warm = Workspace(Path(folder) / "warm")
    warm.learning.work(_started(warm, address, 1, group_size, concurrency, batch_size, max_tokens), "bench")
    reset(address)
    workspace = Workspace(Path(folder) / "workspace")
    run_id = _started(workspace, address, tasks, group_size, concurrency, batch_size, max_tokens)
    found: Found = {}
    with measured(found), _profiled(profile):
        done = workspace.learning.work(run_id, "bench")
    found["status"] = done.status
    found["tally"] = done.tally.model_dump()
    found["extraction"] = done.extraction.model_dump(mode="json")
    groups, _ = workspace.store.groups.page(run_id, limit=1_000_000)
    found["groups"] = [[g.batch, g.size, g.scored if g.status == "informative" else 0] for g in groups]
    return found


def _started(
    workspace: Any,
    address: str,
    tasks: int,
    group_size: int,
    concurrency: int,
    batch_size: int,
    max_tokens: int,
) -> str:
    from tests.make import add_stub, add_tasks, make_tasks

    add_tasks(workspace, make_tasks(tasks))
    config = add_stub(workspace, address, concurrency=concurrency, context_length=64_000)
    update = {"extraction_endpoint": config.endpoint, "group_size": group_size}
    update |= {"batch_size": batch_size, "max_tokens": max_tokens}
    return str(workspace.learning.start(config.model_copy(update=update), "bench").id)


@contextmanager
def _profiled(path: str) -> Iterator[None]:
    if not path:
        yield
        return
    import cProfile

    profiler = cProfile.Profile()
    profiler.enable()
    yield
    profiler.disable()
    profiler.dump_stats(path)


def load(modules: Sequence[str]) -> Found:
    """Import modules, and nothing else: the memory that is there before any work."""
    for name in modules:
        with suppress(Exception):  # some are only there once another one has made them
            importlib.import_module(name)
    return {}


# -- clients without anything around them ----------------------------------------------------------


def replay(client: str, address: str, requests: str, concurrency: int) -> Found:
    """Make the calls of a recorded run once more, stage after stage, with a bare client.

    Args:
        client: "openai" (`AsyncOpenAI`, one client) or "aiohttp" (the library below it).
        address: of the stub.
        requests: a JSON file with the bodies.
        concurrency: calls in flight at most.
    """
    bodies: dict[str, list[Found]] = {}
    for body in json.loads(Path(requests).read_text(encoding="utf-8")):
        bodies.setdefault(kind_of(body["messages"]), []).append(body)
    order = [*STAGES, *sorted(set(bodies) - set(STAGES))]
    return asyncio.run(_replay(client, address, [bodies.get(kind, []) for kind in order], concurrency))


async def _replay(client: str, address: str, stages: list[list[Found]], concurrency: int) -> Found:
    ask, close = _openai(address) if client == "openai" else _aiohttp(address)
    await ask(stages[0][0])
    reset(address)
    found: Found = {}
    slots = asyncio.Semaphore(concurrency)

    async def one(body: Found) -> str:
        async with slots:
            return str(await ask(body))

    with measured(found):
        for stage in stages:
            await asyncio.gather(*map(one, stage))
    await close()
    return found


def _openai(address: str) -> tuple[Callable[[Found], Any], Callable[[], Any]]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=address, api_key="none", max_retries=0)

    async def ask(body: Found) -> str | None:
        completion = await client.chat.completions.create(**body)
        return completion.choices[0].message.content

    return ask, client.close


def _aiohttp(address: str) -> tuple[Callable[[Found], Any], Callable[[], Any]]:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def ask(body: Found) -> Any:
        async with session.post(f"{address}/chat/completions", json=body) as response:
            return (await response.json())["choices"][0]["message"]["content"]

    return ask, session.close


# -- storing --------------------------------------------------------------------------------------


def store(folder: str, rollouts: int, characters: int, group_size: int = 5) -> Found:
    """Write down rollouts with answers of so many characters, group by group; then list fifty of them."""
    from core.workspace import Workspace
    from tests.make import add_stub, add_tasks, make_group, make_tasks

    workspace = Workspace(Path(folder) / "workspace")
    groups = rollouts // group_size
    add_tasks(workspace, make_tasks(groups))
    config = add_stub(workspace, "http://127.0.0.1:9/v1").model_copy(update={"group_size": group_size})
    run = workspace.learning.start(config, "bench")
    rows, _ = workspace.store.groups.page(run.id, limit=groups)
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    wall = cpu = 0.0
    for row in rows:
        answers = [" ".join(rng.choices(words, k=characters // 6))[:characters] for _ in range(group_size)]
        rewards = [float(i % 2) for i in range(group_size)]
        made = make_group(*rewards, id=row.id, answers=answers, run_id=run.id, task_id=row.task_id)
        group = made.model_copy(update={"rollouts": tuple(map(_as_a_run_stores_it, made.rollouts))})
        started, computed = time.perf_counter(), time.process_time()
        workspace.store.groups.save(group)
        wall += time.perf_counter() - started
        cpu += time.process_time() - computed
    groups = workspace.store.groups
    listing = min(_seconds(lambda: groups.page(run.id, limit=50)) for _ in range(5))
    ten = [row.id for row in rows[-10:]]
    reading = min(_seconds(lambda: [groups.get(i, trajectories=False) for i in ten]) for _ in range(5))
    size = sqlite3.connect(workspace.folder / "winnow.db").execute(
        "SELECT sum(length(body)) FROM trajectories"
    )
    return {
        "store_ms": 1000 * wall / rollouts,
        "store_cpu_ms": 1000 * cpu / rollouts,
        "list_groups_ms": 1000 * listing,
        "list_rollouts_ms": 1000 * reading,
        "stored_mb": size.fetchone()[0] / 2**20,
    }


def _as_a_run_stores_it(rollout: Rollout) -> Rollout:
    """With its messages: the reply is there twice, as a message and as the answer."""
    from core.rollout import Message

    answer = rollout.trajectory.answer
    messages = (Message(role="user", content="What is 3 + 4?"), Message(role="assistant", content=answer))
    trajectory = rollout.trajectory.model_copy(update={"messages": messages})
    return rollout.model_copy(update={"trajectory": trajectory})


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


WORK: dict[str, Callable[..., Found]] = {"learn": learn, "load": load, "replay": replay, "store": store}


def main() -> None:
    name, arguments = sys.argv[1:3]
    found = WORK[name](**json.loads(arguments))
    found["peak_mb"] = peak_mb()
    found["modules"] = sorted(sys.modules)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
