"""The paired effect: two arms on the same tasks, compared task by task (DESIGN 2.10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.advantage import SPREAD
from core.effect.interval import interval
from core.effect.signflip import sign_flip


@dataclass(frozen=True, slots=True)
class Paired:
    """What an arm is above another one, over the tasks that both were scored on."""

    tasks: int
    """Scored in both arms; everything else is over these."""
    mean: float | None
    """Mean over tasks of the difference of mean rewards; None without a task."""
    low: float | None
    """Ends of the 95 % interval over tasks (`core.effect.interval`); None with fewer than two tasks."""
    high: float | None
    p_two_sided: float | None
    """That the arms differ; sign-flip test. None without a task."""
    p_greater: float | None
    """One-sided, that the first arm is better."""
    wins: int
    """Tasks on which the first arm is better."""
    ties: int
    losses: int
    unpaired: int
    """Tasks left out because an arm has no scored sample there."""


def paired(
    arm: Sequence[float | None], baseline: Sequence[float | None], *, reach: float = 1.0, seed: int = 0
) -> Paired:
    """Compare an arm with a baseline on the same tasks.

    Args:
        arm: mean reward of each task (`mean_at_k`), shape [tasks]; None where no sample was scored.
        baseline: the same tasks in the same order.
        reach: the largest difference that a task can show: 1 for rewards in [0, 1].
        seed: of the sign flips, where there are too many to go through all.

    Raises:
        ValueError: the arms have different numbers of tasks, or a reward is NaN or infinite.

    >>> effect = paired([1.0, 0.5, None], [0.5, 0.5, 1.0])
    >>> effect.tasks, effect.mean, effect.wins, effect.ties, effect.unpaired
    (2, 0.25, 1, 1, 1)
    """
    both = [(a, b) for a, b in zip(arm, baseline, strict=True) if a is not None and b is not None]
    differences = [a - b for a, b in both]
    if not all(map(math.isfinite, differences)):
        raise ValueError("a reward is NaN or infinite; a task without a scored sample has the reward None")
    n = len(differences)
    ends = interval(differences, reach=reach)
    p = sign_flip(differences, seed=seed) if n else None
    wins, losses = sum(d > SPREAD for d in differences), sum(d < -SPREAD for d in differences)
    return Paired(
        tasks=n,
        mean=math.fsum(differences) / n if n else None,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        p_two_sided=p.two_sided if p else None,
        p_greater=p.greater if p else None,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        unpaired=len(arm) - n,
    )
