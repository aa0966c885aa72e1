"""What the informative groups of a run teach: each is counted for the evidence, and contrasted where a model is asked.

Sampled groups come one by one while others are under way; recorded ones are there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.advantage import mean_deviation
from core.evidence import Seen
from core.library import Library
from core.ports import Progress
from core.rollout import Group, Run, Task
from core.settings import RunConfig
from core.store import Store
from core.workspace.crediting import Crediting
from core.workspace.models import Models
from core.workspace.nearest import Comparing, Nearest

if TYPE_CHECKING:
    from core.extraction.with_model import Taught, Teacher
    from core.llm import Access


class Contrasting:
    """Gathers what the groups of one run teach."""

    def __init__(self, store: Store, run: Run) -> None:
        self._store = store
        self._run = run
        self._crediting = Crediting(store)
        self.seen = Seen()
        """What was counted."""
        self.strengths: dict[str, float] = {}
        """Mean |r_i - mean| of each group that was counted, by its id."""

    def count(self, group: Group) -> Task | None:
        """Count an informative group; gives its task, or None where it teaches nothing (DESIGN 2.10)."""
        task = self._store.tasks.find(group.task_id)
        if group.status != "informative" or task is None or task.split != "train":
            return None
        self.seen.add(task, group)
        self.strengths[group.id] = mean_deviation([r.extrinsic for r in group.rollouts])
        return task

    async def teach(self, group: Group, teacher: Teacher | None) -> Taught | None:
        """Count an informative group, and have a model contrast it; what the model said is stored at once."""
        task = self.count(group)
        if task is None or teacher is None:
            return None
        attempt = self._store.groups.contrast_attempt(group.id)
        taught = await teacher.teach(task, group, attempt=attempt)
        with self._store.writing():
            self._store.groups.save_critiques(
                {s.rollout_id: (s.text, s.canonical()) for s in taught.summaries},
                {a.rollout_id: a.sentence for a in taught.advantages},
                {group.id: taught.raw_reply},
            )
            self._crediting.credit_group(group, task, taught)  # now with what its summaries cite
        return taught

    def teacher(
        self, config: RunConfig, library: Library, models: Models, access: Access, progress: Progress
    ) -> Teacher | None:
        """Who contrasts groups and consolidates batches; None where no model is to be asked."""
        name = config.extraction_endpoint
        if not name or config.split != "train":
            return None
        from core.extraction.with_model import Teacher

        return Teacher(
            list(library),
            access.chat(name, "extraction"),
            run_id=self._run.id,
            seed=config.seed,
            withhold_answer=config.withhold_answer,
            near=Comparing(self._store, lambda: models.embedder(access)).alike,
            nearest=Nearest(self._store, models, access),
            progress=progress,
        )
