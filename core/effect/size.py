"""How many tasks find an effect, and what a number of tasks can find.

The difference of a task has two parts: what the arm does to this task, which varies between tasks, and the chance of
the few samples drawn. More samples make only the second one smaller, more tasks both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.effect.distributions import MANY, NORMAL, noncentral_upper, student_quantile

Samples = Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Spread:
    """How much differences vary."""

    between: float
    """Standard deviation, over tasks, of the true difference of a task; >= 0."""
    within: float = 0.0
    """Standard deviation of the reward of one sample around the mean of its task and arm; >= 0."""

    def of_difference(self, samples: int) -> float:
        """Standard deviation of the difference of two means of so many samples each."""
        return math.sqrt(self.between**2 + 2 * self.within**2 / samples)

    @classmethod
    def seen(cls, arm: Samples, baseline: Samples) -> Spread | None:
        """Estimate both parts from an evaluation or a pilot, by the method of moments.

        Args:
            arm: rewards of each task's samples, shape [tasks, samples]; None = not scored.
            baseline: the same tasks in the same order.

        Returns:
            None where fewer than two tasks have two scored samples in each arm.
        """
        differences, chance, pooled = [], [], []
        for pair in zip(arm, baseline, strict=True):
            known = [[r for r in rewards if r is not None] for rewards in pair]
            if min(map(len, known)) < 2:
                continue
            variances = [_variance(rewards) for rewards in known]
            differences.append(math.fsum(known[0]) / len(known[0]) - math.fsum(known[1]) / len(known[1]))
            chance.append(sum(v / len(rewards) for v, rewards in zip(variances, known, strict=True)))
            pooled += variances
        if len(differences) < 2:
            return None
        between = _variance(differences) - math.fsum(chance) / len(chance)
        return cls(math.sqrt(max(0.0, between)), math.sqrt(math.fsum(pooled) / len(pooled)))


def power(
    effect: float,
    tasks: int,
    spread: Spread,
    *,
    samples: int = 4,
    level: float = 0.05,
    sides: Literal[1, 2] = 2,
) -> float:
    """The chance that an evaluation shows a true effect: the power of the paired t test (noncentral t).

    The sign-flip test and the plan with looks find a little less: about one or two points of a hundred.

    Args:
        effect: the true mean difference, > 0.
        tasks: 2 or more.
        spread: how much differences vary (`Spread.seen`).
        samples: scored samples of each task and arm.
        level: chance to see an effect where there is none.
        sides: 1 where only a better arm counts.

    Raises:
        ValueError: an effect of 0 or less, fewer than 2 tasks, or no sample.
    """
    if not effect > 0 or tasks < 2 or samples < 1:
        raise ValueError("power is about an effect above 0, at least 2 tasks and at least 1 sample")
    sd = spread.of_difference(samples)
    if sd == 0:
        return 1.0
    df, shift = tasks - 1, effect / sd * math.sqrt(tasks)
    t = student_quantile(1 - level / sides, df)
    return noncentral_upper(t, df, shift) + (noncentral_upper(t, df, -shift) if sides == 2 else 0.0)


def sample_size(
    effect: float,
    spread: Spread,
    *,
    samples: int = 4,
    level: float = 0.05,
    sides: Literal[1, 2] = 2,
    wanted: float = 0.8,
) -> int:
    """The fewest tasks with which an evaluation shows a true effect with the wanted power; the inverse of `power`.

    Raises:
        ValueError: an effect of 0 or less, no sample, or a wanted power that does not lie between the level and 1.
    """
    if not effect > 0 or samples < 1 or not level < wanted < 1:
        raise ValueError(
            "a number of tasks needs an effect above 0, a sample, and a power between the level and 1"
        )
    z = NORMAL.inv_cdf(1 - level / sides) + NORMAL.inv_cdf(wanted)
    tasks = max(2, math.ceil((spread.of_difference(samples) / effect * z) ** 2))  # t needs a few more than z
    while tasks < MANY and power(effect, tasks, spread, samples=samples, level=level, sides=sides) < wanted:
        tasks += 1
    return tasks


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)
