"""How attempts are judged: the verifier of each task, those that a run adds, and what they may reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import InputError, SandboxError
from core.executor import LocalExecutor
from core.rollout import Group, Run, Score, Task, Trajectory
from core.sandbox.confined import Confined, cannot
from core.settings import RunConfig, VerifierSpec
from core.store import Store
from core.trust import load_function
from core.verifiers import Guarded, Outside, make_verifier, missing
from core.workspace.exploring import Exploring, explored
from core.workspace.models import Models

if TYPE_CHECKING:
    from core.agent import Agent
    from core.llm import Access, OpenAIChat


def outside_of(judge: str | None, access: Access, executor: LocalExecutor) -> Outside:
    """What verifiers may reach: the sandbox, the judge's endpoint, and the functions that the trust file names.

    Raises:
        NotFoundError: there is no such endpoint.
    """
    return replace(unasked(), judge=access.chat(judge, "judge") if judge else None, call=executor.call)


def unasked() -> Outside:
    """What verifiers may reach where no model is asked."""
    return Outside(sandbox=Confined("verifiers"), load_function=load_function)


def agent_of(config: RunConfig, model: OpenAIChat, verifier: Callable[[VerifierSpec], Guarded]) -> Agent:
    """The agent of a run; nothing of it is started yet.

    Args:
        config: of the run; it has an agent.
        model: who is asked.
        verifier: builds the gates.

    Raises:
        TrustError: a tool may not be used on this machine.
        SandboxError: there is a tool that runs code, and code cannot be confined here.
        InputError: there is no such tool, or a gate cannot be used.
    """
    from core.agent import Agent

    assert config.agent is not None
    limits = [config.agent.time_limit_s, *([config.rollout_timeout_s] if config.rollout_timeout_s else [])]
    agent = Agent(
        config.agent.model_copy(update={"time_limit_s": min(limits)}),
        client_for=model.sdk_client,
        model_name=model.name,
        context_length=model.context_length,
        sandbox=Confined("agents"),
        verifier=verifier,
        at_once=model.endpoint.concurrency,
    )
    if "python" in config.agent.tools and (why := cannot()):
        raise SandboxError(why)
    return agent


def judging(
    models: Models,
) -> Callable[[Run], AbstractAsyncContextManager[Callable[[VerifierSpec], Guarded]]]:
    """How verifiers are built where a run is rescored: its own judge is asked, else the endpoint with that role."""

    @asynccontextmanager
    async def opened(run: Run) -> AsyncIterator[Callable[[VerifierSpec], Guarded]]:
        judge = run.config.judge_endpoint or models.roles()["judge"]
        executor = LocalExecutor()
        async with models.access(run_id=run.id) as access:
            try:
                outside = outside_of(judge, access, executor)

                def make(spec: VerifierSpec) -> Guarded:
                    if trouble := missing(spec, outside):
                        raise InputError(f"The verifier {spec.kind!r} cannot judge here: {trouble}")
                    return make_verifier(spec, outside)

                yield make
            finally:
                executor.close()

    return opened


class Scoring:
    """Scores attempts, and tells how new their answers are."""

    def __init__(
        self, config: RunConfig, store: Store, models: Models, access: Access, executor: LocalExecutor
    ) -> None:
        """Nothing is opened before it is needed.

        Raises:
            NotFoundError: there is no such endpoint for the judge.
        """
        self._more: Mapping[str, VerifierSpec] = config.reward.verifiers
        self._outside = outside_of(config.judge_endpoint, access, executor)
        self._exploring = Exploring(store, lambda: models.embedder(access))

    def make(self, spec: VerifierSpec) -> Guarded:
        """Build a verifier with all that it may reach.

        Raises:
            InputError: unknown kind or option.
        """
        return make_verifier(spec, self._outside)

    async def score(self, task: Task, trajectory: Trajectory) -> dict[str, Score]:
        """The verdict of each verifier by its name; the task's own goes by its kind."""
        specs = {task.verifier.kind: task.verifier, **self._more}
        return {name: await self.make(spec).score(task, trajectory) for name, spec in specs.items()}

    async def explore(self, group: Group) -> Group:
        """The group with its diversity and novelty; it reads earlier answers, so it stays in this process."""
        return await asyncio.to_thread(explored, group, self._exploring)
