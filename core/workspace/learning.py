"""A run from its plan to its proposals: what is still missing is what is done."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from core.errors import BusyError, InputError, ModelError
from core.experience import Operation, Proposal, ProposalStatus, targets_of, text_of
from core.library import Library
from core.ports import Progress, silent
from core.record import Record, content_hash
from core.rollout import Run, Task
from core.runner import Assignment, Runner
from core.settings import Endpoint, RunConfig
from core.store import Store
from core.verifiers import make_verifier
from core.words import normalise
from core.workspace.extracting import Found, Pair, extract
from core.workspace.models import Models
from core.workspace.prompts import Prompts

if TYPE_CHECKING:
    from core.extraction.draft import Draft
    from core.llm import Budget


PROBE_S = 1.0
"""`busy` holds a run's lock for a moment: who wants to work waits so long before it believes that it is taken."""


class Plan(Record):
    """What a run would do, before anything is done."""

    config: RunConfig
    tasks: tuple[Task, ...]
    library_version: int
    model: str
    calls: int
    """Requests at most, retries apart: a reply that is in the cache costs none."""
    request: str
    """Hash of what is asked for: the same again is the same run."""
    resumes: str | None = None
    """The run of this request that is there already."""
    finished: bool = False
    """That run is done; nothing would be sampled."""


class Learning:
    """The runs of one workspace."""

    def __init__(self, store: Store, models: Models, locks: Path) -> None:
        self._store = store
        self._models = models
        self._locks = locks

    def plan(self, config: RunConfig) -> Plan:
        """Say what a run would do.

        Raises:
            InputError: there are no tasks for it, or its settings contradict each other.
            NotFoundError: there is no such endpoint or library version.
        """
        endpoint = self._models.get(config.endpoint)
        if config.extraction_endpoint:
            self._models.get(config.extraction_endpoint)
        if config.max_tokens >= endpoint.context_length:
            raise InputError(
                f"max_tokens {config.max_tokens} leaves no room for a prompt: {endpoint.name} has a context of "
                f"{endpoint.context_length} tokens. Choose a smaller --max-tokens."
            )
        tasks = _seeded(self._store.tasks.select(config.split, config.domains), config)
        if not tasks:
            raise InputError(_no_tasks(config, self._store.tasks.counts()))
        asked = config.model_dump(mode="json", exclude={"max_calls", "max_tokens_total", "max_cost_usd"})
        request = content_hash([asked, endpoint.model, endpoint.base_url, [t.canonical() for t in tasks]])
        head = self._store.versions.head()
        version = (
            head
            if config.library_version is None
            else self._store.versions.get(config.library_version).number
        )
        there = self._store.runs.by_request(request)
        if there and there.status == "done" and there.library_version != version:
            there = None  # the library moved on since: the same request is new work
        return Plan(
            config=config,
            tasks=tuple(tasks),
            library_version=there.library_version if there else version,
            model=endpoint.model,
            calls=len(tasks) * (1 if endpoint.sends_n else config.group_size),
            request=request,
            resumes=there.id if there else None,
            finished=there is not None and there.status == "done",
        )

    def start(self, config: RunConfig, actor: str) -> Run:
        """Write a run down, or find the one of the same request; nothing is sampled yet."""
        plan = self.plan(config)
        if plan.resumes:
            return self._store.runs.get(plan.resumes)
        with self._store.writing():
            if there := self.plan(config).resumes:  # somebody else started it meanwhile
                return self._store.runs.get(there)
            run_id = self._store.runs.create(
                config,
                plan.tasks,
                [i // config.batch_size for i in range(len(plan.tasks))],
                request=plan.request,
                kind="sampled",
                library_version=plan.library_version,
                model=plan.model,
                note="",
                actor=actor,
            )
        return self._store.runs.get(run_id)

    def busy(self, run_id: str) -> bool:
        """Whether a process works on the run now."""
        lock = FileLock(self._locks / f"{run_id}.lock")
        try:
            with lock.acquire(blocking=False):
                return False
        except Timeout:
            return True

    def work(
        self, run_id: str, actor: str, progress: Progress = silent, caps: RunConfig | None = None
    ) -> Run:
        """Do what is missing of a run: sample, verify, extract. Finished calls are never paid for again.

        Args:
            run_id: which run.
            actor: who works on it.
            progress: told of every group.
            caps: where its caps are other ones now than when it was written down.

        Raises:
            BusyError: another process works on it.
            ModelUnavailableError: the endpoint cannot be used; what was finished is kept.
            BudgetError: its cap is reached; likewise.
        """
        self._locks.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._locks / f"{run_id}.lock")
        try:
            with lock.acquire(timeout=PROBE_S):
                return self._work(run_id, actor, progress, caps)
        except Timeout as e:
            raise BusyError(f"Another process works on {run_id}; wait for it, or stop it first.") from e

    def _work(self, run_id: str, actor: str, progress: Progress, caps: RunConfig | None) -> Run:
        run = self._store.runs.get(run_id)
        if run.status == "done":
            return run
        self._store.runs.set_status(run_id, "running", actor)
        try:
            asyncio.run(self._learn(run, actor, progress, caps or run.config))
        except ModelError as e:
            self._store.runs.set_status(run_id, "waiting", actor, str(e))
            raise
        return self._store.runs.get(run_id)

    def propose(self, run_id: str, actor: str, progress: Progress = silent) -> Run:
        """Draw lessons from the informative groups of a finished run, such as recorded rollouts; no model is asked.

        What waits for a decision already is not proposed twice.

        Raises:
            InputError: the run is not finished, or its tasks are not there to teach.
        """
        from core.llm import Budget

        run = self._store.runs.get(run_id)
        if run.status != "done":
            raise InputError(f"{run_id} is not finished: `winnow run --resume {run_id}` goes on with it.")
        if not teaches(run):
            raise InputError(
                f"{run_id} is on {run.config.split} tasks; only train tasks teach (DESIGN 2.10)."
            )
        library = self._store.versions.library()
        offline = run.model_copy(
            update={"config": run.config.model_copy(update={"extraction_endpoint": None})}
        )
        found = asyncio.run(
            extract(offline, self._informative(run_id), library, self._models, Budget(), progress)
        )
        self._propose(run, library, found, actor)
        return self._store.runs.get(run_id)

    async def _learn(self, run: Run, actor: str, progress: Progress, caps: RunConfig) -> None:
        from core.llm import Budget

        budget = Budget(
            max_calls=caps.max_calls,
            max_tokens=caps.max_tokens_total,
            max_cost_usd=caps.max_cost_usd,
            spent=run.usage,
        )
        library = self._store.versions.library(run.library_version)
        await self._sample(run, library, budget, progress)
        learned = self._informative(run.id) if teaches(run) else []
        found = await extract(run, learned, library, self._models, budget, progress)
        self._propose(run, library, found, actor)

    async def _sample(self, run: Run, library: Library, budget: Budget, progress: Progress) -> None:
        waiting = self._store.runs.waiting(run.id)
        if not waiting:
            return
        endpoint = self._models.get(run.config.endpoint)
        async with aclosing(self._models.chat(endpoint.name, budget)) as model:
            runner = Runner(
                model=model,
                config=run.config,
                library_version=run.library_version,
                prompt=Prompts(library, endpoint, run.config, self._store, self._models),
                verifier=lambda task: make_verifier(task.verifier),
                in_flight=_groups_in_flight(endpoint, run.config),
            )
            assignments = [
                Assignment(group_id, run.id, self._task(task_id), batch=i) for group_id, task_id, i in waiting
            ]
            await runner.sample(assignments, self._store.runs.save_group, progress)

    def _informative(self, run_id: str) -> list[Pair]:
        groups = self._store.runs.groups(run_id, "informative")
        return [(self._task(g.task_id), g) for g in groups]

    def _task(self, task_id: str) -> Task:
        found = self._store.tasks.find(task_id)
        if found is None:
            raise AssertionError("groups refer to tasks by a foreign key")
        return found

    def _propose(self, run: Run, library: Library, found: Found, actor: str) -> None:
        """Write down all proposals of a run and that it is done, in one transaction."""
        with self._store.writing():
            fresh, joined = self._not_yet_proposed(found.drafts)
            proposals = [_proposal(d, run, library, "proposed", "") for d in fresh]
            proposals += [_proposal(s.draft, run, library, "superseded", s.reason) for s in found.superseded]
            self._store.proposals.add(proposals, actor)
            self._store.proposals.quarantine(found.outcome.quarantined)
            self._store.runs.save_semantic(found.semantic)
            counted = {"proposed": len(fresh), "joined": found.extraction.joined + joined}
            self._store.runs.save_extraction(run.id, found.extraction.model_copy(update=counted))
            self._store.runs.set_status(run.id, "done", actor)

    def _not_yet_proposed(self, drafts: Sequence[Draft]) -> tuple[list[Draft], int]:
        """Leave out what waits for a decision already, word for word: a second run finds the same lessons again."""
        waiting, _ = self._store.proposals.page(["proposed", "deferred", "approved"], limit=100_000)
        there = {_same(p.operation) for p in waiting}
        fresh = [d for d in drafts if _same(d.operation) not in there]
        return fresh, len(drafts) - len(fresh)


def teaches(run: Run) -> bool:
    """Whether lessons may be drawn from a run: trial tasks select and final tasks report, they never teach."""
    return run.config.split == "train"


def _same(operation: Operation) -> tuple[str, tuple[str, ...], str, str]:
    """What makes two operations one: the kind, the targets, the normalised text, the domain."""
    text = text_of(operation)
    domain = getattr(operation, "domain", None) or ""
    return operation.op, targets_of(operation), normalise(text) if text else "", domain


def _proposal(draft: Draft, run: Run, library: Library, status: ProposalStatus, reason: str) -> Proposal:
    targets = targets_of(draft.operation)
    return Proposal(
        id="",  # the store gives it
        operation=draft.operation,
        status=status,
        reason=reason,
        extractor=draft.extractor,
        rationale=draft.rationale,
        evidence=draft.evidence.model_copy(update={"group_ids": draft.evidence.group_ids or draft.group_ids}),
        run_id=run.id,
        base_version=library.version,
        base_texts={i: library.experiences[i].text for i in targets if i in library.experiences},
        confidence=draft.confidence,
        learned_on=draft.learned_on,
        raw_reply=draft.raw_reply,
    )


def _seeded(tasks: Sequence[Task], config: RunConfig) -> list[Task]:
    """The tasks of a run in their seeded order; with a limit, the first so many of each domain."""
    order = sorted(tasks, key=lambda t: t.id)
    random.Random(config.seed).shuffle(order)
    if config.limit is None:
        return order
    taken: Counter[str] = Counter()
    kept = []
    for task in order:
        if taken[task.domain] < config.limit:
            kept.append(task)
        taken[task.domain] += 1
    return kept


def _no_tasks(config: RunConfig, counts: Mapping[str, Mapping[str, int]]) -> str:
    if not counts:
        return "There are no tasks yet: import some with `winnow tasks import FILE`, or try `winnow demo`."
    there = "; ".join(f"{d} ({', '.join(f'{n} {s}' for s, n in by.items())})" for d, by in counts.items())
    asked = f" of {', '.join(config.domains)}" if config.domains else ""
    return f"There are no {config.split} tasks{asked}; the workspace has {there}."


def _groups_in_flight(endpoint: Endpoint, config: RunConfig) -> int:
    if endpoint.sends_n:
        return endpoint.concurrency
    return (
        math.ceil(endpoint.concurrency / config.group_size) + 1
    )  # one more, so that no slot waits for a verifier
