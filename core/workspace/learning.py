"""A run from its plan to its proposals: what is still missing is what is done."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from pydantic import JsonValue

from core.errors import BusyError, InputError, WinnowError
from core.experience import GENERAL
from core.library import Library
from core.ports import Progress, silent
from core.record import Record, content_hash
from core.rollout import Extraction, Run, Task, Usage
from core.runner import Assignment, Runner
from core.settings import Endpoint, RunConfig
from core.store import Store
from core.store.spending import Entry
from core.verifiers import make_verifier
from core.workspace.extracting import Pair, extract
from core.workspace.models import Models
from core.workspace.prompts import Prompts
from core.workspace.proposing import save_proposals

if TYPE_CHECKING:
    from core.llm import Budget

CAPS = {"max_calls", "max_tokens_total", "max_cost_usd"}
"""Settings of a run that do not change what it is."""

LATER = {"epochs", "gate", "reward", "agent", "resample", "rollout_timeout_s", "withhold_answer"}
"""Settings that runs of version 0.1 did not have: left at their default they do not change what a run is."""

PROBE_S = 1.0
"""`busy` holds a run's lock for a moment: who wants to work waits so long before it believes that it is taken."""


class Plan(Record):
    """What a run would do, before anything is done."""

    config: RunConfig
    tasks: tuple[Task, ...]
    library_version: int
    model: str
    calls: int
    """Requests for rollouts at most, retries and extraction apart: a reply that is in the cache costs none."""
    with_lessons: int = 0
    """Tasks whose domain the library version has lessons for; the others are asked as they are."""
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
        extractor = self._models.get(config.extraction_endpoint) if config.extraction_endpoint else None
        if config.max_cost_usd is not None and not (endpoint.price_in or endpoint.price_out):
            raise InputError(
                f"A cap on money cannot hold: {endpoint.name} has no price. Give it one (--price-in, --price-out), "
                "or cap the calls or tokens."
            )
        if config.max_tokens >= endpoint.context_length:
            raise InputError(
                f"max_tokens {config.max_tokens} leaves no room for a prompt: {endpoint.name} has a context of "
                f"{endpoint.context_length} tokens. Choose a smaller --max-tokens."
            )
        tasks = _seeded(self._store.tasks.select(config.split, config.domains), config)
        if not tasks:
            raise InputError(_no_tasks(config, self._store.tasks.counts()))
        asked = _asked(config)
        models = [_identity(endpoint), _identity(extractor) if extractor else None]
        request = content_hash([asked, models, [t.canonical() for t in tasks]])
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
            with_lessons=_with_lessons(tasks, self._store.versions.library(version)),
            resumes=there.id if there else None,
            finished=there is not None and there.status == "done",
        )

    def start(self, config: RunConfig, actor: str) -> Run:
        """Write a run down, or find the one of the same request; nothing is sampled yet."""
        with self._store.writing():
            plan = self.plan(config)
            run_id = plan.resumes or self._store.runs.create(
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
            ModelUnavailableError: an endpoint cannot be used; what was finished is kept.
            BudgetError: its cap is reached; likewise.
            InputError: the key of an endpoint cannot be read; likewise.
        """
        with self._holding(run_id):
            run = self._store.runs.get(run_id)
            if run.status == "done":
                return run
            self._store.runs.set_status(run_id, "running", actor)
            budget = _budget(caps or run.config, run.spent)

            booked = run.spent

            def book() -> None:
                nonlocal booked
                usage, booked = budget.spent - booked, budget.spent
                if usage.calls:
                    entry = Entry(run_id=run_id, endpoint=run.config.endpoint, stage="rollout", usage=usage)
                    self._store.spending.book([entry])

            def booking(what: str, done: int, total: int) -> None:
                book()  # as it goes: a kill must not make calls free
                progress(what, done, total)

            try:
                asyncio.run(self._learn(run, actor, booking, budget))
            except WinnowError as e:
                self._store.runs.set_status(run_id, "waiting", actor, str(e))
                raise
            finally:
                book()
            return self._store.runs.get(run_id)

    def retry(self, run_id: str, actor: str) -> int:
        """Let the next start make up for what failed: rollouts that broke off, groups that were not contrasted.

        Replies that came are in the cache, so only what is missing is asked for. Gives the number of groups.

        Raises:
            InputError: nothing failed, or the rollouts were recorded elsewhere.
            BusyError: another process works on it.
        """
        with self._holding(run_id):
            run = self._store.runs.get(run_id)
            reopened = self._store.runs.reopen_failed(run_id, actor) + len(run.extraction.not_contrasted)
            if run.extraction.not_contrasted:
                self._store.runs.set_status(run_id, "waiting", actor)
        if not reopened:
            raise InputError(f"Nothing of {run_id} failed; there is nothing to retry.")
        return reopened

    def untaught(self, run_id: str) -> bool:
        """Whether nobody drew lessons from a finished run yet."""
        run = self._store.runs.get(run_id)
        return run.status == "done" and run.extraction == Extraction()

    def propose(self, run_id: str, actor: str, progress: Progress = silent) -> Run:
        """Draw lessons from the informative groups of a finished run, such as recorded rollouts; no model is asked.

        What was proposed before is not proposed twice.

        Raises:
            InputError: the run is not finished, or holds nothing that may teach.
        """
        from core.llm import Budget

        run = self._store.runs.get(run_id)
        if run.status != "done":
            raise InputError(f"{run_id} is not finished: `winnow run --resume {run_id}` goes on with it.")
        pairs = self._informative(run_id)
        if not pairs:
            raise InputError(f"{run_id} has no informative group of train tasks, and only train tasks teach.")
        library = self._store.versions.library()
        offline = run.model_copy(
            update={"config": run.config.model_copy(update={"extraction_endpoint": None})}
        )
        found = asyncio.run(extract(offline, pairs, library, self._models, Budget(), progress))
        save_proposals(self._store, run, library, found, actor)
        return self._store.runs.get(run_id)

    @contextmanager
    def _holding(self, run_id: str) -> Iterator[None]:
        self._locks.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._locks / f"{run_id}.lock")
        try:
            lock.acquire(timeout=PROBE_S)
        except Timeout as e:
            raise BusyError(f"Another process works on {run_id}; wait for it, or stop it first.") from e
        try:
            yield
        finally:
            lock.release()

    async def _learn(self, run: Run, actor: str, progress: Progress, budget: Budget) -> None:
        library = self._store.versions.library(run.library_version)
        await self._sample(run, library, budget, progress)
        found = await extract(run, self._informative(run.id), library, self._models, budget, progress)
        save_proposals(self._store, run, library, found, actor)

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
                Assignment(group_id, run.id, self._task(task_id), batch=batch)
                for group_id, task_id, batch in waiting
            ]
            await runner.sample(assignments, self._store.runs.save_group, progress)

    def _informative(self, run_id: str) -> list[Pair]:
        """The groups that may teach: trial tasks select and final tasks report (DESIGN 2.10)."""
        groups = self._store.runs.groups(run_id, "informative")
        pairs = [(self._task(g.task_id), g) for g in groups]
        return [(task, group) for task, group in pairs if task.split == "train"]

    def _task(self, task_id: str) -> Task:
        found = self._store.tasks.find(task_id)
        if found is None:
            raise AssertionError("groups refer to tasks by a foreign key")
        return found


def _budget(caps: RunConfig, spent: Usage) -> Budget:
    from core.llm import Budget

    return Budget(
        max_calls=caps.max_calls,
        max_tokens=caps.max_tokens_total,
        max_cost_usd=caps.max_cost_usd,
        spent=spent,
    )


def _asked(config: RunConfig) -> dict[str, JsonValue]:
    """What a run is known by: its settings without its caps, and without those that came later and say nothing."""
    asked = config.model_dump(mode="json", exclude=CAPS)
    plain = RunConfig().model_dump(mode="json")
    return {k: v for k, v in asked.items() if k not in LATER or v != plain[k]}


def _identity(endpoint: Endpoint) -> dict[str, JsonValue]:
    """What of an endpoint decides about the replies; its prices, limits and key do not."""
    kept = {
        "name",
        "base_url",
        "model",
        "context_length",
        "injection_tokens",
        "sends_seed",
        "json_schema",
        "extra",
    }
    return endpoint.model_dump(mode="json", include=kept)


def _with_lessons(tasks: Sequence[Task], library: Library) -> int:
    domains = {e.domain for e in library}
    return sum(GENERAL in domains or t.domain in domains for t in tasks)


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
