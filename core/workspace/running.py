"""One process's work on a run: groups go through all stages as they come, and only consolidation waits.

Without a gate a portion is an epoch: all its batches are sampled and taught side by side, and lessons are drawn once,
at the end, from all that was counted. With a gate a portion is one batch: its lessons are written down (and published,
or waited for) before the next one is sampled under the then newest version.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from core.errors import ApplyError, InputError
from core.executor import LocalExecutor
from core.library import Library
from core.ports import Progress
from core.prior import bias_map
from core.review import Review
from core.rollout import Batch, Group, Run, RunStatus, Task
from core.runner import Assignment, Runner
from core.settings import Endpoint, Resample
from core.settling import settle
from core.store import Store
from core.store.groups import ANSWER_SHOWN
from core.workspace.contrasting import Contrasting
from core.workspace.crediting import Crediting
from core.workspace.drawing import Found, draw
from core.workspace.models import Models
from core.workspace.nearest import Nearest
from core.workspace.priors import check_tokenizer, limits_of
from core.workspace.prompts import Prompts
from core.workspace.proposing import save_proposals
from core.workspace.scoring import Scoring, agent_of

if TYPE_CHECKING:
    from core.agent import Agent
    from core.extraction.with_model import Learned, Taught
    from core.llm import Access

Place = tuple[int, int]
"""Epoch and batch."""

Item = tuple[Place, str | Assignment]
"""A group that is there already, by its id, or one that is to be sampled."""


@dataclass
class _Batches:
    """What is under way of the batches of one portion: each is consolidated when its last group has come."""

    open: Counter[Place] = field(default_factory=Counter)
    taught: defaultdict[Place, list[Taught]] = field(default_factory=lambda: defaultdict(list))
    consolidating: dict[Place, asyncio.Task[Learned]] = field(default_factory=dict)


class Execution:
    """Does what is missing of one run."""

    def __init__(
        self,
        store: Store,
        models: Models,
        run: Run,
        actor: str,
        access: Access,
        progress: Progress,
        trying: Callable[[Batch], None] | None = None,
    ) -> None:
        """`trying` is the gate `trial` of the run: called when a batch was concluded, in a thread of its own."""
        self._trying = trying
        self._store = store
        self._models = models
        self._run = run
        self._config = run.config
        self._actor = actor
        self._access = access
        self._progress = progress
        self._executor = LocalExecutor()
        self._scoring = Scoring(run.config, store, models, access, self._executor)
        self._crediting = Crediting(store)
        self._contrasting = Contrasting(store, run)
        self._agent: Agent | None = None
        self._total = self._finished = 0

    async def finish(self) -> RunStatus:
        """Work until the run is done, or until its gate waits for a person; gives the status that it is in then.

        Raises:
            ModelUnavailableError, BudgetError, InputError, StoppedError: what was finished is kept.
        """
        tally = self._run.tally
        self._total, self._finished = tally.total, tally.total - tally.waiting
        self._progress("groups", self._finished, self._total)
        try:
            async with AsyncExitStack() as stack:
                if self._config.agent is not None and tally.waiting:
                    model = self._access.chat(self._config.endpoint, "rollout")
                    agent = agent_of(self._config, model, self._scoring.make)
                    self._agent = await stack.enter_async_context(agent)
                return await (self._collect() if self._config.gate == "none" else self._batch_by_batch())
        finally:
            self._executor.close()

    async def _collect(self) -> RunStatus:
        """Work epoch by epoch under one version, and draw lessons at the end."""
        epochs: defaultdict[int, list[Batch]] = defaultdict(list)
        for batch in self._store.runs.batches(self._run.id):
            epochs[batch.epoch].append(batch)
        library = self._store.versions.library(self._run.library_version)
        learned: list[Learned] = []
        for epoch, batches in sorted(epochs.items()):
            if self._nothing_left_to_learn(epoch):
                break
            learned += await self._work_on(batches, library)
        if self._config.split == "train":
            last = self._config.epochs - 1
            found = await self._drawn(library, learned, last)
            with self._store.writing():  # together: lessons that are drawn twice would be told of twice
                save_proposals(self._store, self._run, library, found, self._actor, epoch=last)
                self._store.runs.set_status(self._run.id, "done", self._actor)
        return "done"

    async def _batch_by_batch(self) -> RunStatus:
        """Conclude each batch before the next one is sampled."""
        for batch in self._store.runs.batches(self._run.id):
            if self._waits_for_review():
                return "review"
            if self._nothing_left_to_learn(batch.epoch):
                break
            if self._is_concluded(batch):
                self._recall(batch)
            else:
                library = self._pinned(batch)
                learned = await self._work_on([batch], library)
                await self._conclude(batch, library, learned)
            if self._trying is not None:
                await self._try_out(batch, self._trying)
        return "review" if self._waits_for_review() else "done"

    # --- batches ---

    def _nothing_left_to_learn(self, epoch: int) -> bool:
        """Stop early: when an epoch brought nothing informative, the next one would not either."""
        if epoch == 0 or self._store.groups.informative_in(self._run.id, epoch - 1):
            return False
        reason = f"not sampled: nothing was informative in epoch {epoch}"
        return self._store.groups.skip_from(self._run.id, epoch, reason, self._actor) > 0

    def _is_concluded(self, batch: Batch) -> bool:
        waiting = {(w.epoch, w.batch) for w in self._store.groups.waiting(self._run.id)}
        return batch.extraction is not None and (batch.epoch, batch.batch) not in waiting

    def _pinned(self, batch: Batch) -> Library:
        """The version that a batch is sampled under: the run's for the first, the newest when it starts for others."""
        version = batch.library_version
        if version is None:
            first = (batch.epoch, batch.batch) == (0, 0)
            version = self._run.library_version if first else self._store.versions.head()
            self._store.runs.start_batch(self._run.id, batch.epoch, batch.batch, version)
        return self._store.versions.library(version)

    def _recall(self, batch: Batch) -> None:
        """Count the groups of a batch that is concluded: evidence is counted over the run so far."""
        place = (batch.epoch, batch.batch)
        for group in self._store.groups.all(self._run.id, "informative", place):
            self._contrasting.count(group)

    # --- groups ---

    async def _work_on(self, portion: Sequence[Batch], library: Library) -> list[Learned]:
        """Sample and teach the groups of some batches, each through all stages as it comes."""
        contrasting = self._contrasting
        teacher = contrasting.teacher(self._config, library, self._models, self._access, self._progress)
        runner = self._runner(library)
        batches = _Batches()
        places = [(b.epoch, b.batch) for b in portion]
        items = self._items(places)
        batches.open.update(place for place, _ in items)

        async def through(item: Item) -> None:
            place, todo = item
            groups = await self._groups(todo, runner)
            for group in groups:
                if taught := await contrasting.teach(group, teacher):
                    batches.taught[place].append(taught)
            batches.open[place] -= 1
            if teacher is not None and not batches.open[place] and batches.taught[place]:
                consolidating = teacher.consolidate(
                    batches.taught.pop(place), strengths=contrasting.strengths
                )
                batches.consolidating[place] = asyncio.create_task(consolidating)

        try:
            async for _ in self._executor.stream(through, items, at_once=self._at_once()):
                pass
            return [await batches.consolidating[place] for place in sorted(batches.consolidating)]
        finally:
            for task in batches.consolidating.values():
                task.cancel()

    def _items(self, places: Sequence[Place]) -> list[Item]:
        """What is to go through: informative groups that are there already, by id, and those still to be sampled."""
        groups, run_id = self._store.groups, self._run.id
        there: list[Item] = [(p, g) for p in places for g in groups.ids(run_id, "informative", p)]
        to_sample: list[Item] = [
            (
                (w.epoch, w.batch),
                Assignment(
                    group_id=w.id,
                    run_id=run_id,
                    task=self._task(w.task_id),
                    epoch=w.epoch,
                    batch=w.batch,
                    attempt=w.attempt,
                    temperature=w.temperature,
                ),
            )
            for w in groups.waiting(run_id)
            if (w.epoch, w.batch) in places
        ]
        return there + to_sample

    async def _groups(self, todo: str | Assignment, runner: Runner) -> list[Group]:
        """The group that is meant, and those that its task was sampled anew for; all of them are stored."""
        if isinstance(todo, str):
            return [self._store.groups.get(todo)]
        groups = []
        while True:
            group = self._as_accepted(await runner.sample(todo))
            with self._store.writing():
                again = self._store.groups.save(group, self._resample(group))
                self._crediting.credit_group(group, todo.task)
            self._finished += 1
            self._total += again is not None
            self._progress("groups", self._finished, self._total)
            groups.append(group)
            if again is None:
                return groups
            todo = replace(todo, group_id=again.id, attempt=again.attempt, temperature=again.temperature)

    def _as_accepted(self, group: Group) -> Group:
        """A group that is sampled again, with what people said of those of its outcomes that are the same."""
        said = self._store.groups.said_of(group.id)
        if not said:
            return group
        rollouts = [
            r.model_copy(update={"accepted": said.get((r.id, r.trajectory.answer[:ANSWER_SHOWN]))})
            for r in group.rollouts
        ]
        return settle(group.model_copy(update={"rollouts": tuple(rollouts)}), self._config.reward)

    def _resample(self, group: Group) -> Resample | None:
        again = self._config.resample
        wanted = again is not None and group.status == "uninformative" and group.attempt < again.attempts
        return again if wanted else None

    # --- lessons ---

    async def _drawn(self, library: Library, learned: Sequence[Learned], epoch: int) -> Found:
        self._progress("evidence", 0, 1)
        seen, strengths = self._contrasting.seen, self._contrasting.strengths
        found = await self._executor.call(draw, self._run, seen, list(library), learned, strengths, epoch)
        self._progress("evidence", 1, 1)
        return found

    async def _conclude(self, batch: Batch, library: Library, learned: Sequence[Learned]) -> None:
        """Write down the proposals of a batch, and publish the valid ones where the gate says so."""
        found = await self._drawn(library, learned, batch.epoch)
        with self._store.writing():
            saved = save_proposals(
                self._store, self._run, library, found, self._actor, batch=batch, epoch=batch.epoch
            )
            if self._config.gate == "auto":
                self._publish(batch, saved.ids)

    async def _try_out(self, batch: Batch, trying: Callable[[Batch], None]) -> None:
        """Let the gate try what was proposed; what it sends counts against the caps of the run."""
        before = self._store.spending.of_run(self._run.id)
        try:
            await asyncio.to_thread(trying, batch)
        finally:
            self._access.terms.budget.add(self._store.spending.of_run(self._run.id) - before)

    def _publish(self, batch: Batch, ids: Sequence[str]) -> None:
        review = Review(self._store)
        actor = f"{self._actor} (auto gate of {self._run.id})"
        approved = []
        for proposal_id in ids:
            try:
                approved.append(review.approve(proposal_id, actor).id)
            except (ApplyError, InputError):  # too long, or against another one: it waits for a person
                continue
        if approved:
            message = f"{self._run.id}, epoch {batch.epoch + 1}, batch {batch.batch + 1}"
            version = review.publish(message, actor, only=approved)
            self._store.runs.set_published(self._run.id, batch.epoch, batch.batch, version.number)

    def _waits_for_review(self) -> bool:
        """Whether proposals of this run, or those that it repeats, wait for a decision or to be published."""
        if self._config.gate != "review":
            return False
        proposals, open_ones = self._store.proposals, ("proposed", "approved")
        if proposals.page(open_ones, run_id=self._run.id, limit=1)[1]:
            return True
        drawn = [b.extraction for b in self._store.runs.batches(self._run.id) if b.extraction is not None]
        return any(proposals.get(i).status in open_ones for e in drawn for i in e.waiting_for)

    # --- parts ---

    def _runner(self, library: Library) -> Runner:
        endpoint = self._models.get(self._config.endpoint)
        return Runner(
            model=self._access.chat(endpoint.name, "rollout"),
            config=self._config,
            library_version=library.version,
            prompt=Prompts(library, endpoint, self._config, Nearest(self._store, self._models, self._access)),
            score=self._scoring.score,
            agent=self._agent,
            explore=self._scoring.explore if "epistemic" in self._config.reward.by_component else None,
            bias=self._bias(endpoint) if self._config.prior else None,
        )

    def _bias(self, endpoint: Endpoint) -> Callable[[Task], Mapping[int, float]]:
        """What the run's token prior adds to the logits; refused where the endpoint has another tokenizer."""
        prior = self._store.priors.get(self._config.prior or "")
        check_tokenizer(prior, endpoint)
        limits = limits_of(endpoint)
        return lambda task: bias_map(prior, limits, domain=task.domain).values

    def _at_once(self) -> int:
        """Groups that are under way at once: enough that no endpoint has a free slot while there is work."""
        names = [self._config.endpoint, self._config.extraction_endpoint]
        endpoints = [self._models.get(name) for name in names if name]
        return max(endpoint.concurrency for endpoint in endpoints) + 1

    def _task(self, task_id: str) -> Task:
        found = self._store.tasks.find(task_id)
        if found is None:
            raise AssertionError("groups refer to tasks by a foreign key")
        return found
