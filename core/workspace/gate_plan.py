"""What the gate `trial` of a run may take and let pass, said before the run starts; asks no model.

What a run will propose is not known beforehand, only how much it can be: so many lessons of each domain from counted
evidence, so many operations of each group from a model, and a deletion of each lesson that is live. The gate tries each
of them once; at the least there are none, and nothing is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.experience import GENERAL, MAX_WORDS
from core.extraction.contrast_prompt import MAX_OPERATIONS
from core.extraction.from_evidence import MAX_PER_DOMAIN
from core.library import Library
from core.record import Record
from core.rollout import Task, Usage
from core.settings import Endpoint, RunConfig
from core.store import Store
from core.workspace.estimating import Bounds, estimate
from core.workspace.judgeable import judgeable
from core.workspace.trial_gate import LEAST_TASKS, SAMPLES, selecting

WORD_TOKENS = 2
"""Of a word of a lesson, at the high end."""


class GatePlan(Record):
    """What a gate may take, and where it can let nothing pass."""

    takes: Bounds = Bounds()
    notes: tuple[str, ...]


class _Size(Record):
    """How much a gate can have to do."""

    tasks: int
    """Trial tasks that select."""
    fresh: int
    """Those that are left for the estimate of what passed."""
    drawn: int
    """Lessons that are proposed at most, in the whole run."""
    deleted: int
    """Lessons whose deletion is proposed at most."""
    batches: int
    """After each of which the gate is asked."""

    @property
    def proposals(self) -> int:
        return self.drawn + self.deleted

    @property
    def each(self) -> int:
        """Rollouts of one proposal that passes, without those that it is held against."""
        return SAMPLES * (self.tasks + self.fresh)

    @property
    def beside(self) -> int:
        """Rollouts beside the proposals: in each batch the version without them, and the new one against it."""
        return self.batches * SAMPLES * (self.tasks + 2 * (self.fresh or self.tasks))


def plan_gate(
    tasks: Sequence[Task],
    config: RunConfig,
    endpoint: Endpoint,
    library: Library,
    store: Store,
    judge: Endpoint | None,
) -> GatePlan:
    """Say what the gate of a run may take.

    Args:
        tasks: of one epoch of the run.
        config: of the run; its gate is `trial`.
        endpoint: of its rollouts.
        library: the version that it begins with.
        store: has the trial tasks.
        judge: of the verifiers that ask a model; None where there are none.
    """
    there = judgeable(store.tasks.select("trial"), config.reward)
    notes = [note for note in (_too_few(tasks, there),) if note]
    own = {t.domain for t in tasks}
    everywhere = len(own) > 1 or GENERAL in own or config.extraction_endpoint is not None
    reached = there if everywhere else [t for t in there if t.domain in own]
    if len(reached) < LEAST_TASKS:
        return GatePlan(notes=tuple(notes))
    size = _size(tasks, config, library, reached, selecting(Counter(t.domain for t in there)))
    one = config.model_copy(update={"group_size": SAMPLES, "epochs": 1, "resample": None, "split": "trial"})
    most = estimate(reached, one, endpoint, library, judge=judge).total.high
    alone = _longer(
        most, endpoint, lessons=1 if size.batches == 1 else size.drawn
    )  # after one batch, others are there
    together = _longer(most, endpoint, lessons=size.drawn)
    each = _share(alone, size.each, SAMPLES * len(reached))
    proposals = _share(alone, size.proposals * size.each, SAMPLES * len(reached))
    high = proposals + _share(together, size.beside, SAMPLES * len(reached))
    notes.append(_told(size, config, each))
    return GatePlan(takes=Bounds(high=high), notes=tuple(notes))


def _size(
    tasks: Sequence[Task], config: RunConfig, library: Library, reached: Sequence[Task], limit: int
) -> _Size:
    """How much there can be to do; of each domain at most `limit` trial tasks select."""
    select = sum(min(n, limit) for n in Counter(t.domain for t in reached).values())
    batches = config.epochs * -(-len(tasks) // config.batch_size)
    domains = {t.domain for t in tasks}
    drawn = MAX_PER_DOMAIN * (len(domains) + (len(domains) > 1 and GENERAL not in domains)) * batches
    if config.extraction_endpoint is not None:
        drawn += MAX_OPERATIONS * len(tasks) * config.epochs
    live = sum(e.domain in domains or e.domain == GENERAL for e in library)
    deleted = live + (drawn if batches > 1 else 0)  # also of what was published meanwhile
    return _Size(tasks=select, fresh=len(reached) - select, drawn=drawn, deleted=deleted, batches=batches)


def _longer(most: Usage, endpoint: Endpoint, lessons: int) -> Usage:
    """What the same calls take with so many lessons more in each prompt."""
    tokens = most.calls * min(endpoint.injection_budget, lessons * MAX_WORDS * WORD_TOKENS)
    return most + Usage(prompt_tokens=tokens, cost_usd=endpoint.cost(tokens, 0))


def _share(most: Usage, part: int, whole: int) -> Usage:
    """What some of the rollouts take, if each takes its share."""
    share = part / whole
    return Usage(
        calls=round(most.calls * share),
        prompt_tokens=round(most.prompt_tokens * share),
        completion_tokens=round(most.completion_tokens * share),
        cost_usd=most.cost_usd * share,
    )


def _told(size: _Size, config: RunConfig, each: Usage) -> str:
    fresh = f" and {size.fresh} fresh ones if it passes," if size.fresh else ","
    kinds = [f"{MAX_PER_DOMAIN} of each domain and batch from what is counted"]
    kinds += [f"{MAX_OPERATIONS} of each group from the model"] if config.extraction_endpoint else []
    kinds += ["a deletion of each live lesson"] if size.deleted else []
    return (
        f"The gate is in the total, from nothing to the most: a proposal takes {each.calls:,} calls, on {size.tasks} "
        f"trial tasks{fresh} {SAMPLES} rollouts each; a run makes at most {size.proposals:,} ({', '.join(kinds)}); the "
        "version without them, and the new one, are sampled beside them."
    )


def _too_few(tasks: Sequence[Task], trial: Sequence[Task]) -> str:
    """Says in which domains the gate can let nothing pass; empty where it can in all."""
    there = Counter(t.domain for t in trial)
    few = {d: there[d] for d in sorted({t.domain for t in tasks})}
    few = {d: n for d, n in few.items() if n < LEAST_TASKS}
    if not few:
        return ""
    named = ", ".join(f"{d} ({n})" for d, n in few.items())
    return (
        f"The gate `trial` takes {LEAST_TASKS} trial tasks for each lesson, and there are fewer in {named}: what is "
        "learned there waits for a person."
    )
