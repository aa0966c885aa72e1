"""One task tried as a run would try it: a group that is shown and not stored.

1. The model is asked in a process of its own (`winnow run --rehearse`), so that the web process never waits for one.
   It is found again by what was asked for: a page that is drawn anew, or in another tab, sees the same one.
2. The replies go into the cache: a run that is started with the same settings does not pay for them again. What was
   sent is booked outside of any run. Nothing else is written down, so there is nothing to redact or to clean up.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from core.errors import InputError, WinnowError
from core.executor import LocalExecutor
from core.injection import estimate_tokens
from core.record import Record, content_hash
from core.roles import Role, check
from core.rollout import Group, Task, Usage
from core.runner import Assignment, Runner
from core.settings import RunConfig
from core.store import Store
from core.workspace.models import Models
from core.workspace.nearest import Nearest
from core.workspace.planning import Plan, make_plan
from core.workspace.prompts import Prompts
from core.workspace.scoring import Scoring, agent_of

NAME = "rehearsal"
"""Stands where a group has the id of its run."""
WITHIN_S = 180.0
"""Seconds after which a rehearsal is ended."""
KEPT = 20
"""Rehearsals that are kept, of all workspaces together."""
SAID = 400
"""Characters of what a process said at last that are shown."""
ROOT = Path(__file__).parents[2]


class Rehearsal(Record):
    """What came of one task."""

    task: Task
    group: Group
    prompt_tokens: int
    """Of the prompt, estimated."""
    sent: Usage
    """What was really sent; replies from the cache took nothing."""
    took_s: float


class Standing(Record):
    """Where a rehearsal is."""

    state: str
    """"none", "running", "done" or "failed"."""
    since_s: float = 0.0
    """Seconds that it has been running."""
    found: Rehearsal | None = None
    trouble: str = ""
    """Why there is nothing, in one sentence."""


def rehearse(store: Store, models: Models, config: RunConfig, task_id: str = "") -> Rehearsal:
    """Sample and score one task of a run; asks the model, in this process.

    Args:
        store: of the workspace.
        models: of the workspace.
        config: of the run.
        task_id: which task; empty takes the first of the run.

    Raises:
        InputError: the run could not be planned, or has no such task.
        NotFoundError: there is no such endpoint or library version.
        ModelUnavailableError, BudgetError: the model cannot be asked.
    """
    plan = make_plan(config, store, models)
    task = next((t for t in plan.tasks if not task_id or t.id == task_id), None)
    if task is None:
        raise InputError(f"This run has no task {task_id!r}.")
    return asyncio.run(_sampled(store, models, plan, task))


async def _sampled(store: Store, models: Models, plan: Plan, task: Task) -> Rehearsal:
    from core.llm import Budget

    config, endpoint = plan.config, models.get(plan.config.endpoint)
    budget = Budget(config.max_calls, config.max_tokens_total, config.max_cost_usd)
    executor = LocalExecutor()
    started = time.monotonic()
    async with models.access(budget) as access:
        scoring = Scoring(config, store, models, access, executor)
        library = store.versions.library(plan.library_version)
        runner = Runner(
            model=access.chat(endpoint.name, "rollout"),
            config=config,
            library_version=library.version,
            prompt=Prompts(library, endpoint, config, Nearest(store, models, access)),
            score=scoring.score,
            explore=scoring.explore if "epistemic" in config.reward.by_component else None,
        )
        assignment = Assignment(group_id=f"{NAME}-0001", run_id=NAME, task=task)
        try:
            if config.agent is None:
                group = await runner.sample(assignment)
            else:
                made = agent_of(config, access.chat(endpoint.name, "rollout"), scoring.make)
                async with made as agent:
                    group = await replace(runner, agent=agent).sample(assignment)
        finally:
            executor.close()
    messages = group.rollouts[0].trajectory.messages if group.rollouts else ()
    asked = [m.content for m in messages if m.role in ("system", "user")]
    return Rehearsal(
        task=task,
        group=group,
        prompt_tokens=sum(map(estimate_tokens, asked)),
        sent=budget.spent,
        took_s=round(time.monotonic() - started, 2),
    )


# --- from the web process ---


@dataclass
class _Going:
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]
    at: float
    """Monotonic seconds."""
    result: Standing | None = None


_going: dict[tuple[Path, str], _Going] = {}
_lock = threading.RLock()
"""Two tabs that begin the same rehearsal at once start one process."""


def key_of(plan: Plan) -> str:
    """What a rehearsal goes by: the same for the same request under the same version, whoever asks."""
    return content_hash([plan.request, plan.library_version])


def begin(folder: Path, key: str, config: RunConfig, role: Role) -> None:
    """Start a rehearsal in a process of its own; one that runs already is left alone.

    Raises:
        TrustError: it asks a model, which takes a reviewer.
    """
    check(role, "reviewer", "rehearse")
    with _lock:
        there = _going.get((folder, key))
        if there and there.process.poll() is None:
            return
        forget(folder, key)
        _going[folder, key] = _started(folder, config)
        for oldest in list(_going)[:-KEPT]:
            forget(*oldest)


def _started(folder: Path, config: RunConfig) -> _Going:
    out, err, asked = (tempfile.TemporaryFile() for _ in range(3))  # noqa: SIM115  # closed when it is forgotten
    asked.write(config.canonical().encode())
    asked.seek(0)
    command = [sys.executable, "-m", "core", "run", "--rehearse", "--config", "-", "--json"]
    process = subprocess.Popen(
        [*command, "--workspace", str(folder)],
        stdin=asked,
        stdout=out,
        stderr=err,
        cwd=ROOT,
        start_new_session=True,
    )
    asked.close()
    return _Going(process, out, err, time.monotonic())


def standing(folder: Path, key: str) -> Standing:
    """Where a rehearsal is."""
    with _lock:
        going = _going.get((folder, key))
        if going is None:
            return Standing(state="none")
        since = time.monotonic() - going.at
        if going.result is None:
            if going.process.poll() is None and since < WITHIN_S:
                return Standing(state="running", since_s=since)
            going.result = _ended(going)
        return going.result


def forget(folder: Path, key: str) -> None:
    """End a rehearsal where it runs, and keep nothing of it."""
    with _lock:
        if going := _going.pop((folder, key), None):
            _end(going.process)
            going.out.close()
            going.err.close()


def _ended(going: _Going) -> Standing:
    late = going.process.poll() is None
    _end(going.process)
    if late:
        return Standing(state="failed", trouble=f"It was not done within {WITHIN_S:.0f} s and was ended.")
    going.out.seek(0)
    try:
        answer: Any = json.load(going.out)
        if isinstance(answer, dict) and set(answer) == {"error"}:
            return Standing(state="failed", trouble=str(answer["error"]))
        return Standing(state="done", found=Rehearsal.read(answer))
    except (ValueError, WinnowError):
        going.err.seek(0)
        last = going.err.read().decode("utf-8", "replace").strip()[-SAID:]
        return Standing(state="failed", trouble=last or "It ended without an answer.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
