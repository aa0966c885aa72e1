"""Two runs beside each other, paired by task. It describes what was seen; a proof takes tasks that taught nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from core.advantage import SPREAD
from core.figures import RunFigure, TaskPair
from core.record import Record
from core.store import Store

RESAMPLES = 2_000
LEVEL = 0.95
LEAST = 5
"""Tasks of a domain without which no interval is given."""
OVERALL = ""


class Difference(Record):
    """Mean reward of run B minus that of run A over shared tasks of one domain."""

    domain: str
    """Empty = all shared tasks."""
    tasks: int
    mean_a: float
    mean_b: float
    difference: float
    low: float | None = None
    """Of the 95 % bootstrap interval over tasks; None where there are too few tasks."""
    high: float | None = None
    wins: int = 0
    """Tasks that B does better."""
    ties: int = 0
    losses: int = 0


class Versus(Record):
    """Two runs, paired by task."""

    a: RunFigure
    b: RunFigure
    shared: int
    """Tasks that both have scored rollouts of."""
    overall: Difference | None
    domains: tuple[Difference, ...]
    pairs: tuple[TaskPair, ...]
    """Every shared task, the largest differences first."""

    @property
    def same(self) -> bool:
        """Whether no shared task has another mean reward."""
        return self.overall is not None and self.overall.ties == self.overall.tasks


def versus(store: Store, a: str, b: str) -> Versus:
    """Compare two runs.

    Raises:
        NotFoundError: there is no such run.
    """
    one, other = store.figures.sums(a), store.figures.sums(b)
    pairs = store.figures.pairs(a, b)
    by_domain: dict[str, list[TaskPair]] = defaultdict(list)
    for pair in pairs:
        by_domain[pair.domain].append(pair)
    return Versus(
        a=one,
        b=other,
        shared=len(pairs),
        overall=difference(OVERALL, pairs) if pairs else None,
        domains=tuple(difference(domain, by_domain[domain]) for domain in sorted(by_domain)),
        pairs=tuple(sorted(pairs, key=lambda p: (-abs(p.b - p.a), p.task_id))),
    )


def difference(domain: str, pairs: Sequence[TaskPair]) -> Difference:
    """What B does better or worse than A on some tasks.

    Args:
        domain: what they are called.
        pairs: at least one.
    """
    moved = [p.b - p.a for p in pairs]
    interval = bootstrap(moved) if len(moved) >= LEAST else None
    return Difference(
        domain=domain,
        tasks=len(pairs),
        mean_a=sum(p.a for p in pairs) / len(pairs),
        mean_b=sum(p.b for p in pairs) / len(pairs),
        difference=sum(moved) / len(moved),
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        wins=sum(d > SPREAD for d in moved),
        ties=sum(abs(d) <= SPREAD for d in moved),
        losses=sum(d < -SPREAD for d in moved),
    )


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of a mean, tasks drawn with replacement; the same values give the same interval.

    How often each *different* value is drawn is multinomial, and there are few of those: mean rewards of small groups.
    """
    import numpy as np

    different, counts = np.unique(np.round(np.asarray(values, dtype=float), 9), return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(values), counts / len(values), RESAMPLES)
    low, high = np.percentile(drawn @ different / len(values), (50 - 50 * LEVEL, 50 + 50 * LEVEL))
    return float(low), float(high)
