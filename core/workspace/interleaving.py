"""One process's work on an evaluation: all arms are sampled side by side, task by task, under one budget.

So whatever changes while it runs (a server that is updated, a machine that slows down) changes for all arms alike, and
an evaluation that is stopped early has the same tasks in each of them. Nothing is learned from its groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from core.evaluation import compare
from core.executor import LocalExecutor
from core.library import Library
from core.ports import Progress
from core.proof import Arm, Evaluation
from core.rollout import Run, Task
from core.runner import Assignment, Runner
from core.settings import Endpoint
from core.store import Store
from core.workspace.models import Models
from core.workspace.nearest import Nearest
from core.workspace.outcomes import Outcomes
from core.workspace.priors import Priors
from core.workspace.prompts import Prompts
from core.workspace.scoring import Scoring, agent_of

if TYPE_CHECKING:
    from core.agent import Agent
    from core.llm import Access


@dataclass(frozen=True)
class Item:
    """One group of one arm that is still to be sampled."""

    arm: str
    run_id: str
    assignment: Assignment


class Interleaving:
    """Does what is missing of one evaluation."""

    def __init__(
        self,
        store: Store,
        models: Models,
        evaluation: Evaluation,
        libraries: Mapping[str, Library],
        actor: str,
        access: Access,
        progress: Progress,
    ) -> None:
        """
        Args:
            store: where the groups are.
            models: of the workspace.
            evaluation: which.
            libraries: of each sampled arm, by name.
            actor: who works on it.
            access: its way to the endpoints.
            progress: told of every group.
        """
        self._store = store
        self._models = models
        self._evaluation = evaluation
        self._config = evaluation.config
        self._libraries = libraries
        self._actor = actor
        self._access = access
        self._progress = progress
        self._executor = LocalExecutor()
        self._outcomes = Outcomes(store)
        self._told = self._outcomes.told(evaluation)
        self._runs = {i: store.runs.brief(i) for ids in evaluation.runs.values() for i in ids}
        self._stopped = dict(evaluation.stopped)
        self._agent: Agent | None = None
        self._done = self._total = 0

    async def finish(self) -> None:
        """Sample until nothing is missing.

        Raises:
            ModelUnavailableError, BudgetError, InputError, StoppedError: what was finished is kept.
        """
        self._total = sum(run.tally.total for run in self._runs.values())
        self._done = self._total - sum(run.tally.waiting for run in self._runs.values())
        self._progress("groups", self._done, self._total)
        try:
            async with AsyncExitStack() as stack:
                await self._begin_agent(stack)
                runners = {run_id: self._runner(arm, self._runs[run_id]) for arm, run_id in self._sampled()}
                for block in self._blocks():
                    await self._sample(block, runners)
                    if self._config.look_every:
                        self._look()
        finally:
            self._executor.close()

    async def _begin_agent(self, stack: AsyncExitStack) -> None:
        run = next(iter(self._runs.values()))
        if run.config.agent is not None and self._done < self._total:
            make = self._scoring(run).make
            agent = agent_of(run.config, self._access.chat(run.config.endpoint, "rollout"), make)
            self._agent = await stack.enter_async_context(agent)

    def _sampled(self) -> Iterator[tuple[Arm, str]]:
        for arm in self._config.arms:
            for run_id in self._evaluation.runs.get(arm.name, ()):
                yield arm, run_id

    def _blocks(self) -> list[Sequence[str]]:
        order, every = self._told.order, self._config.look_every or len(self._told.order)
        return [order[i : i + every] for i in range(0, len(order), every)]

    async def _sample(self, tasks: Sequence[str], runners: Mapping[str, Runner]) -> None:
        """Sample what is missing of some tasks: each task in all arms and seeds before the next one begins."""
        waiting = {
            run_id: {w.task_id: w for w in self._store.groups.waiting(run_id)}
            for arm, run_id in self._sampled()
            if arm.name not in self._stopped
        }
        items = [
            Item(arm.name, run_id, self._assignment(run_id, task_id, waiting[run_id][task_id].id))
            for task_id in tasks
            for arm, run_id in self._sampled()
            if task_id in waiting.get(run_id, ())
        ]

        async def sample(item: Item) -> None:
            self._store.groups.save(await runners[item.run_id].sample(item.assignment))
            self._done += 1
            self._progress("groups", self._done, self._total)

        async for _ in self._executor.stream(sample, items, at_once=self._at_once()):
            pass

    def _assignment(self, run_id: str, task_id: str, group_id: str) -> Assignment:
        return Assignment(group_id=group_id, run_id=run_id, task=self._told.tasks[task_id])

    def _at_once(self) -> int:
        return self._models.get(self._config.endpoint).concurrency + 1

    def _runner(self, arm: Arm, run: Run) -> Runner:
        endpoint = self._models.get(run.config.endpoint)
        nearest = Nearest(self._store, self._models, self._access)
        return Runner(
            model=self._access.chat(endpoint.name, "rollout"),
            config=run.config,
            library_version=run.library_version,
            prompt=Prompts(self._libraries[arm.name], endpoint, run.config, nearest),
            score=self._scoring(run).score,
            agent=self._agent,
            bias=self._bias(arm.prior, endpoint) if arm.prior else None,
        )

    def _bias(self, prior_id: str, endpoint: Endpoint) -> Callable[[Task], Mapping[int, float]]:
        priors = Priors(self._store, self._models)

        @cache
        def of_domain(domain: str) -> Mapping[int, float]:
            return priors.bias(prior_id, endpoint, domain=domain).values

        return lambda task: of_domain(task.domain)

    def _scoring(self, run: Run) -> Scoring:
        return Scoring(run.config, self._store, self._models, self._access, self._executor)

    # --- looks ---

    def _look(self) -> None:
        """Take the looks that are due, and stop arms whose boundary is crossed; the last pair stops the baseline."""
        found = self._outcomes.sampled(self._evaluation, self._libraries)
        baseline = self._config.arms[0]
        fresh: dict[str, int] = {}
        for arm in (a for a in self._config.arms[1:] if a.sampled and a.name not in self._stopped):
            told = compare(found, arm, baseline, self._told)
            if told.looks and told.looks[-1].stopped:
                fresh[arm.name] = told.looks[-1].tasks
        if not fresh:
            return
        self._stopped |= fresh
        if all(arm.name in self._stopped for arm in self._config.arms[1:] if arm.sampled):
            self._stopped[baseline.name] = max(self._stopped.values())
        with self._store.writing():
            self._store.evaluations.set_stopped(self._evaluation.id, self._stopped, self._actor)
            for arm, run_id in self._sampled():
                if arm.name in self._stopped:
                    why = f"not sampled: the comparison was decided after {self._stopped[arm.name]} tasks"
                    skipped = self._store.groups.skip_from(run_id, 0, why, self._actor)
                    self._total -= skipped
