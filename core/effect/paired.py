"""The paired effect: two arms on the same tasks, compared task by task (DESIGN 2.10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.advantage import SPREAD
from core.effect.distributions import student_quantile
from core.effect.signflip import sign_flip

LEVEL = 0.95
"""Of the interval."""


@dataclass(frozen=True, slots=True)
class Paired:
    """What an arm gains over another one, over the tasks that both were scored on."""

    tasks: int
    """Scored in both arms: all figures are over these."""
    mean: float | None
    """Mean over tasks of the difference of mean rewards; None without a task."""
    low: float | None
    """Ends of the 95 % interval over tasks; None with fewer than two tasks."""
    high: float | None
    p_two_sided: float | None
    """That the arms differ at all: sign-flip test."""
    p_greater: float | None
    """That the first arm is better: one-sided sign-flip test."""
    wins: int
    ties: int
    losses: int
    unpaired: int
    """Tasks left out since one arm or both have no scored sample there."""


def paired(
    arm: Sequence[float | None],
    baseline: Sequence[float | None],
    *,
    reach: float = 1.0,
    seed: int = 0,
) -> Paired:
    """Compare an arm with a baseline on the same tasks.

    Args:
        arm: mean reward of each task (`mean_at_k`), shape [tasks]; None where no sample was scored.
        baseline: the same tasks in the same order.
        reach: the largest difference that a task can show: 1 for rewards in [0, 1].
        seed: of the sign flips, where there are too many to go through.

    Raises:
        ValueError: the arms have different lengths, or a reward is NaN or infinite.
    """
    pairs = [(a, b) for a, b in zip(arm, baseline, strict=True) if a is not None and b is not None]
    differences = [a - b for a, b in pairs]
    if not all(map(math.isfinite, differences)):
        raise ValueError("a reward is NaN or infinite; a task without a scored sample has the reward None")
    n = len(differences)
    low, high = _interval(differences, reach)
    p = sign_flip(differences, seed=seed) if n else None
    return Paired(
        tasks=n,
        mean=math.fsum(differences) / n if n else None,
        low=low,
        high=high,
        p_two_sided=p.two_sided if p else None,
        p_greater=p.greater if p else None,
        wins=sum(d > SPREAD for d in differences),
        ties=sum(abs(d) <= SPREAD for d in differences),
        losses=sum(d < -SPREAD for d in differences),
        unpaired=len(arm) - n,
    )


def _interval(differences: Sequence[float], reach: float) -> tuple[float | None, float | None]:
    n = len(differences)
    if n < 2:
        return None, None
    mean = math.fsum(differences) / n
    error = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n - 1) / n)
    half = error * student_quantile((1 + LEVEL) / 2, n - 1)
    if all(abs(d) <= SPREAD for d in differences):
        half = reach * (1 - ((1 - LEVEL) / 2) ** (1 / n))
    return mean - half, mean + half
