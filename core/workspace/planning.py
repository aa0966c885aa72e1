"""What a run would do, before anything is done: its tasks, their order, its size, and whether it is there already."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from core.errors import InputError
from core.executor import LocalExecutor
from core.experience import GENERAL
from core.library import Library
from core.memory import learned_elsewhere
from core.record import Record, content_hash
from core.rollout import Run, Task
from core.runner import EPOCH_STRIDE
from core.settings import Endpoint, RunConfig
from core.store import Store
from core.verifiers import make_verifier, missing
from core.workspace.estimating import Bounds, Estimate, estimate
from core.workspace.judgeable import UNCHECKED, judgeable, left_out, nothing_checks
from core.workspace.models import Models
from core.workspace.priors import check_tokenizer, limits_of
from core.workspace.scoring import agent_of, outside_of

CAPS = {"max_calls", "max_tokens_total", "max_cost_usd"}
"""Settings of a run that do not change what it is."""

LATER = {
    "epochs",
    "gate",
    "reward",
    "agent",
    "resample",
    "rollout_timeout_s",
    "withhold_answer",
    "judge_endpoint",
    "arm",
    "prior",
}
"""Settings that runs of version 0.1 did not have: left at their default they do not change what a run is."""


class Plan(Record):
    """What a run would do, before anything is done."""

    config: RunConfig
    tasks: tuple[Task, ...]
    """In the order of the first epoch."""
    library_version: int
    model: str
    calls: int
    """Requests for rollouts at most, sampling anew included; retries, agents' further turns and extraction apart. A
    reply that is in the cache costs none."""
    estimate: Estimate
    """What it may take at least and at most, extraction included."""
    notes: tuple[str, ...] = ()
    """What is good to know before it starts: lessons that were learned on another model."""
    left_out: int = 0
    """Tasks of the split and domains that nothing here can judge."""
    with_lessons: int = 0
    """Tasks whose domain the library version has lessons for; the others are asked as they are."""
    request: str
    """Hash of what is asked for: the same again is the same run."""
    resumes: str | None = None
    """The run of this request that is there already."""
    finished: bool = False
    """That run is done; nothing would be sampled."""

    def in_epoch(self, epoch: int) -> list[Task]:
        """The tasks in the order of an epoch: each once, shuffled by the seed and the epoch."""
        order = sorted(self.tasks, key=lambda t: t.id)
        random.Random(self.config.seed + EPOCH_STRIDE * epoch).shuffle(order)
        return list(self.tasks) if epoch == 0 else order


def make_plan(config: RunConfig, store: Store, models: Models) -> Plan:
    """Say what a run would do.

    Raises:
        InputError: there are no tasks for it, or its settings contradict each other.
        NotFoundError: there is no such endpoint, library version or prior.
    """
    endpoint = models.get(config.endpoint)
    others = [
        models.get(name) if name else None for name in (config.extraction_endpoint, config.judge_endpoint)
    ]
    _check(config, endpoint)
    check_money(config, models)
    if config.prior:
        check_tokenizer(store.priors.get(config.prior), endpoint)
        limits_of(endpoint)
    there_are = store.tasks.select(config.split, config.domains)
    if not there_are:
        raise InputError(_no_tasks(config, store.tasks.counts()))
    can_be_judged = judgeable(there_are, config.reward)
    if not can_be_judged:
        raise InputError(nothing_checks(f"any of the {len(there_are):,} {config.split} tasks asked for"))
    unjudged = len(there_are) - len(can_be_judged)
    tasks = _seeded(can_be_judged, config)
    check_help(config, tasks, models)
    request = _request(config, endpoint, others, tasks)
    head = store.versions.head()
    wanted = config.library_version
    version = head if wanted is None else store.versions.get(wanted).number
    there = store.runs.by_request(request)
    if there and _is_over(there, version, store):
        there = None
    library = store.versions.library(there.library_version if there else version)
    extractor, judge = others
    note = learned_elsewhere(list(library), sorted({t.domain for t in tasks}), endpoint.model)
    each = 1 if endpoint.sends_n and config.agent is None else config.group_size
    each *= 1 + (config.resample.attempts if config.resample else 0)
    takes = estimate(tasks, config, endpoint, library, extractor=extractor, judge=judge)
    gate, told = _gate(tasks, config, endpoint, library, store, judge)
    return Plan(
        config=config,
        tasks=tuple(tasks),
        library_version=library.version,
        model=endpoint.model,
        calls=len(tasks) * config.epochs * each,
        request=request,
        estimate=takes.model_copy(update={"gate": gate}),
        notes=tuple(n for n in (left_out(unjudged), note, *told) if n),
        left_out=unjudged,
        with_lessons=_with_lessons(tasks, library),
        resumes=there.id if there else None,
        finished=there is not None and there.status == "done",
    )


def _check(config: RunConfig, endpoint: Endpoint) -> None:
    if config.max_tokens >= endpoint.context_length:
        raise InputError(
            f"max_tokens {config.max_tokens} leaves no room for a prompt: {endpoint.name} has a context of "
            f"{endpoint.context_length} tokens. Choose a smaller --max-tokens."
        )
    if config.gate != "none" and config.split != "train":
        raise InputError(
            f"The gate {config.gate!r} publishes lessons between batches, and only train tasks teach: leave it out, or "
            "take --split train."
        )


def check_money(config: RunConfig, models: Models) -> None:
    """Refuse a cap on money where an endpoint has no price.

    Raises:
        InputError: one has none.
    """
    names = (config.endpoint, config.extraction_endpoint, config.judge_endpoint)
    for endpoint in (models.get(name) for name in names if name and config.max_cost_usd is not None):
        check_price(endpoint)


def check_price(endpoint: Endpoint) -> None:
    """Refuse a cap on money for an endpoint without a price.

    Raises:
        InputError: it has none.
    """
    if not (endpoint.price_in or endpoint.price_out):
        raise InputError(
            f"A cap on money cannot hold: {endpoint.name} has no price. Give it one (--price-in, --price-out), "
            "or cap the calls or tokens."
        )


def check_going_on(run: Run, caps: RunConfig, models: Models) -> None:
    """Refuse to go on with a run that would no longer be the one that was begun.

    Raises:
        InputError: it was discarded, its endpoint has another model now, or a cap on money cannot hold.
    """
    if run.status == "cancelled" and run.tally.total == 0:
        raise InputError(f"{run.id} was discarded; start it again without --resume.")
    now = models.get(run.config.endpoint)
    if now.model != run.model and run.tally.waiting:
        raise InputError(
            f"{run.id} was begun with {run.model}, and the endpoint {now.name} has the model {now.model} now: "
            "give it the old one again, or start a new run."
        )
    check_money(caps, models)


def check_help(config: RunConfig, tasks: Sequence[Task], models: Models) -> None:
    """Refuse a run whose answers nobody could judge, or whose agents may not do what they are to do."""
    seen = {id(t.verifier): t for t in reversed(tasks)}  # equal ones are mostly the same one
    own = [t for t in reversed(seen.values()) if t.verifier.kind != UNCHECKED]  # another one judges those
    specs = {t.verifier.canonical(): (t.verifier, t.id) for t in own}
    kinds = {t.verifier.kind for t in seen.values()}
    if taken := sorted(kinds & config.reward.verifiers.keys()):
        raise InputError(
            f"{taken[0]!r} is the name that the tasks' own verifier goes by; give the run's verifier another one."
        )
    specs |= {s.canonical(): (s, "") for s in config.reward.verifiers.values()}
    access = models.access()
    outside = outside_of(config.judge_endpoint, access, LocalExecutor())
    for spec, task_id in specs.values():
        if trouble := missing(spec, outside):
            of = f" of task {task_id!r}" if task_id else ""
            raise InputError(f"The verifier {spec.kind!r}{of} cannot judge here: {trouble}")
    if config.agent is not None:
        agent_of(config, access.chat(config.endpoint, "rollout"), lambda spec: make_verifier(spec, outside))


def _request(
    config: RunConfig, endpoint: Endpoint, others: Sequence[Endpoint | None], tasks: Sequence[Task]
) -> str:
    models = [identity_of(endpoint), *(identity_of(e) if e else None for e in others)]
    if models[-1] is None:
        models.pop()  # as it was before there were judges
    return content_hash([_asked(config), models, [t.canonical() for t in tasks]])


def _is_over(run: Run, version: int, store: Store) -> bool:
    """Whether the same request is new work: the library moved on since the run was done, or it was discarded."""
    if run.status == "cancelled":
        return run.tally.total == 0
    return run.status == "done" and version not in _own_versions(store, run)


def _own_versions(store: Store, run: Run) -> set[int | None]:
    """The version that a run began with, and those that its gate made."""
    return {run.library_version, *(batch.published_in for batch in store.runs.batches(run.id))}


def _asked(config: RunConfig) -> dict[str, JsonValue]:
    """What a run is known by: its settings without its caps, and without those that came later and say nothing."""
    asked = config.model_dump(mode="json", exclude=CAPS)
    plain = RunConfig().model_dump(mode="json")
    return {k: v for k, v in asked.items() if k not in LATER or v != plain[k]}


def identity_of(endpoint: Endpoint) -> dict[str, JsonValue]:
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


def _gate(
    tasks: Sequence[Task],
    config: RunConfig,
    endpoint: Endpoint,
    library: Library,
    store: Store,
    judge: Endpoint | None,
) -> tuple[Bounds, tuple[str, ...]]:
    """What the gate of a run may take, and what is good to know of it."""
    if config.gate != "trial":
        return Bounds(), ()
    from core.workspace.gate_plan import plan_gate  # which knows the gate, which works on runs

    found = plan_gate(tasks, config, endpoint, library, store, judge)
    return found.takes, found.notes


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
