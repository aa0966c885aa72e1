"""One task tried as a run would try it: a group that is shown and not stored.

1. The model is asked in a process of its own (`winnow run --rehearse`), so that the web process never waits for one.
   It is found again by what was asked for: a page that is drawn anew, or in another tab, sees the same one.
2. The replies go into the cache: a run that is started with the same settings does not pay for them again. What was
   sent is booked outside of any run. Nothing else is written down, so there is nothing to redact or to clean up.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from core.errors import InputError, WinnowError
from core.executor import LocalExecutor
from core.injection import estimate_tokens
from core.record import Record, content_hash
from core.roles import Role
from core.rollout import Group, Task, Usage
from core.runner import Assignment, Runner
from core.settings import RunConfig
from core.store import Store
from core.workspace import alongside
from core.workspace.judgeable import judgeable, nothing_checks
from core.workspace.models import Models
from core.workspace.nearest import Nearest
from core.workspace.planning import Plan, make_plan
from core.workspace.prompts import Prompts
from core.workspace.scoring import Scoring, agent_of

NAME = "rehearsal"
"""Stands where a group has the id of its run."""


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
        named = store.tasks.find(task_id)
        if named is not None and not judgeable([named], config.reward):
            raise InputError(nothing_checks(f"task {task_id!r}"))
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


def key_of(plan: Plan) -> str:
    """What a rehearsal goes by: the same for the same request under the same version, whoever asks."""
    return content_hash([plan.request, plan.library_version])


def begin(folder: Path, key: str, config: RunConfig, role: Role) -> None:
    """Start a rehearsal in a process of its own; one that runs already is left alone.

    Raises:
        TrustError: it asks a model, which takes a reviewer.
    """
    command = ("run", "--rehearse", "--config", "-")
    alongside.begin(folder, key, *command, role=role, asked=config.canonical().encode())


def standing(folder: Path, key: str) -> Standing:
    """Where a rehearsal is."""
    now = alongside.standing(folder, key)
    if now.state != "done":
        return Standing(state=now.state, since_s=now.since_s, trouble=now.trouble)
    try:
        return Standing(state="done", found=Rehearsal.read(now.answer))
    except WinnowError as e:
        return Standing(state="failed", trouble=str(e))


def forget(folder: Path, key: str) -> None:
    """End a rehearsal where it runs, and keep nothing of it."""
    alongside.forget(folder, key)
