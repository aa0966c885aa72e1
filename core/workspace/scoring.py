"""How the attempts of a run are judged: the verifier of each task, those that the run adds, and what they need."""

from __future__ import annotations

import asyncio

from core.rollout import Group, Score, Task, Trajectory
from core.settings import RunConfig
from core.store import Store
from core.verifiers import make_verifier
from core.workspace.exploring import Exploring, explored
from core.workspace.models import Models


class Scoring:
    """Scores attempts, and tells how new their answers are."""

    def __init__(self, config: RunConfig, store: Store, models: Models) -> None:
        self._config = config
        self._exploring = Exploring(store, models.embedder)

    async def score(self, task: Task, trajectory: Trajectory) -> dict[str, Score]:
        """The verdict of each verifier by its name; the task's own goes by its kind."""
        specs = {task.verifier.kind: task.verifier, **self._config.reward.verifiers}
        return {name: await make_verifier(spec).score(task, trajectory) for name, spec in specs.items()}

    async def explore(self, group: Group) -> Group:
        """The group with its diversity and novelty; it reads earlier answers, so it stays in this process."""
        return await asyncio.to_thread(explored, group, self._exploring)
