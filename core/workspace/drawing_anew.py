"""Lessons from the groups of a finished run, recorded ones above all: what was counted, and a model where one is asked.

The model goes through the same three stages as in a run (`core.workspace.running`), with batches of as many informative
groups. Its replies are in the cache: what was interrupted goes on with the same request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import InputError
from core.executor import LocalExecutor
from core.injection import estimate_tokens
from core.ports import Progress, Wishes
from core.record import Record
from core.rollout import Extraction, Group, GroupRow, Run, Task, Usage
from core.settings import RunConfig
from core.store import Store
from core.workspace.contrasting import Contrasting
from core.workspace.drawing import Found, draw
from core.workspace.estimating import Lengths, extraction_usage, library_tokens
from core.workspace.models import Models

if TYPE_CHECKING:
    from core.extraction.with_model import Learned, Taught

EVERYTHING = 1_000_000
MEASURED = 20
"""Groups whose length the tokens of all are estimated from."""


class Drawn(Record):
    """What came of drawing lessons from a finished run."""

    run: Run
    """As it is now; its figures count all that was ever drawn from it."""
    made: Extraction
    """What was drawn this time."""


class DrawingPlan(Record):
    """What it takes to have a model draw lessons from a finished run, said before it is asked."""

    run_id: str
    endpoint: str
    model: str
    groups: int
    """Informative groups of train tasks: each is contrasted."""
    rollouts: int
    """Of them, with a reward: each is summarised."""
    batches: int
    """Each is consolidated."""
    most: Usage
    """Calls at most, and about how many tokens they take; retries, second tries after a reply that cannot be read, and
    compressions come on top, what is in the cache comes off."""


def teaching(store: Store, run: Run) -> list[tuple[GroupRow, Task]]:
    """The informative groups of train tasks of a run, in order.

    Raises:
        InputError: there are none.
    """
    rows, _ = store.groups.page(run.id, status="informative", limit=EVERYTHING)
    tasks = {task_id: store.tasks.find(task_id) for task_id in {row.task_id for row in rows}}
    found = [(row, task) for row in rows if (task := tasks[row.task_id]) and task.split == "train"]
    if not found:
        raise InputError(f"{run.id} has no informative group of train tasks, and only train tasks teach.")
    return found


class Anew:
    """Draws from one finished run."""

    def __init__(self, store: Store, models: Models, run: Run, config: RunConfig, progress: Progress) -> None:
        """
        Args:
            store: of the workspace.
            models: of the workspace.
            run: which one.
            config: who is asked (`extraction_endpoint`; None asks nobody), the seed, the size of a batch, the caps.
            progress: told of groups and stages.
        """
        self._store = store
        self._models = models
        self._run = run
        self._config = config
        self._progress = progress
        self._contrasting = Contrasting(store, run)
        self.library = store.versions.library()

    async def draw(self, wishes: Wishes) -> Found:
        """Count, ask, and draw; nothing is written but what the model said of groups.

        Raises:
            InputError: nothing of the run may teach, or a cap on money cannot hold.
            ModelUnavailableError, BudgetError, StoppedError: paid replies are in the cache.
        """
        ids = [row.id for row, _ in teaching(self._store, self._run)]
        learned = await self._learned(ids, wishes) if self._config.extraction_endpoint else self._counted(ids)
        self._progress("evidence", 0, 1)
        seen, strengths = self._contrasting.seen, self._contrasting.strengths
        found = draw(self._run, seen, list(self.library), learned, strengths, epoch=0)
        self._progress("evidence", 1, 1)
        return found

    def _counted(self, group_ids: list[str]) -> list[Learned]:
        for group_id in group_ids:
            self._contrasting.count(self._store.groups.get(group_id))
        return []

    async def _learned(self, group_ids: list[str], wishes: Wishes) -> list[Learned]:
        from core.llm import Budget

        config = self._config
        learned: list[Learned] = []
        budget = Budget(
            max_calls=config.max_calls,
            max_tokens=config.max_tokens_total,
            max_cost_usd=config.max_cost_usd,
            spent=self._run.spent,
        )
        at_once = self._models.get(config.extraction_endpoint or "").concurrency + 1
        executor = LocalExecutor()
        async with self._models.access(budget, self._run.id, wishes) as access:
            teacher = self._contrasting.teacher(config, self.library, self._models, access, self._progress)
            if teacher is None:
                raise AssertionError("whoever asks nobody does not come here")

            async def teach(group_id: str) -> Taught | None:
                return await self._contrasting.teach(self._store.groups.get(group_id), teacher)

            size = config.batch_size
            for batch in (group_ids[i : i + size] for i in range(0, len(group_ids), size)):
                taught = [t async for t in executor.stream(teach, batch, at_once=at_once) if t is not None]
                learned.append(await teacher.consolidate(taught, strengths=self._contrasting.strengths))
        return learned


def plan_drawing(store: Store, models: Models, run: Run, config: RunConfig) -> DrawingPlan:
    """Say what it takes to have a model draw lessons from a finished run; asks nobody.

    Raises:
        InputError: nothing of the run may teach, or no endpoint is named.
        NotFoundError: there is no such endpoint.
    """
    if not config.extraction_endpoint:
        raise InputError("Name the endpoint that is to draw lessons: --extraction-endpoint NAME.")
    endpoint, rows = models.get(config.extraction_endpoint), teaching(store, run)
    rollouts = sum(row.scored for row, _ in rows)
    step = -(-len(rows) // MEASURED)
    measured = [_lengths(store.groups.get(row.id), task) for row, task in rows[::step]]
    batches = -(-len(rows) // config.batch_size)
    found = extraction_usage(measured, config.batch_size, endpoint, library_tokens(store.versions.library()))
    share = len(rows) / len(measured)
    prompts, replies = int(share * found.prompt_tokens), int(share * found.completion_tokens)
    most = Usage(
        calls=rollouts + len(rows) + batches,
        prompt_tokens=prompts,
        completion_tokens=replies,
        cost_usd=endpoint.cost(prompts, replies),
    )
    return DrawingPlan(
        run_id=run.id,
        endpoint=endpoint.name,
        model=endpoint.model,
        groups=len(rows),
        rollouts=rollouts,
        batches=batches,
        most=most,
    )


def _lengths(group: Group, task: Task) -> Lengths:
    """Tokens of what the model is shown of a group, about."""
    asked = estimate_tokens(task.question) + estimate_tokens(task.answer or "")
    scored = [r.trajectory for r in group.rollouts if r.outcome == "scored"]
    attempts = []
    for trajectory in scored:
        said = [m.content for m in trajectory.messages] or [trajectory.answer]
        did = [f"{step.tool}{step.parameters}{step.output}{step.error or ''}" for step in trajectory.steps]
        attempts.append(sum(map(estimate_tokens, (*said, *did))))
    return Lengths(asked, attempts, tools=any(t.steps for t in scored))
