"""How many tasks find an effect, and what a number of tasks can find."""

from __future__ import annotations

import math

from core.effect.distributions import NORMAL


def power(
    effect: float,
    tasks: int,
    *,
    sd_between: float,
    sd_within: float = 0.0,
    samples: int = 1,
    level: float = 0.05,
    sides: int = 2,
) -> float:
    """The chance that the paired test finds a true effect."""
    error = math.sqrt((sd_between**2 + 2 * sd_within**2 / samples) / tasks)
    return NORMAL.cdf(effect / error - NORMAL.inv_cdf(1 - level / sides))


def sample_size(
    effect: float,
    *,
    sd_between: float,
    sd_within: float = 0.0,
    samples: int = 1,
    level: float = 0.05,
    sides: int = 2,
    wanted: float = 0.8,
) -> int:
    """The fewest tasks with which the paired test finds a true effect with the wanted power."""
    variance = sd_between**2 + 2 * sd_within**2 / samples
    z = NORMAL.inv_cdf(1 - level / sides) + NORMAL.inv_cdf(wanted)
    return max(2, math.ceil(variance * (z / effect) ** 2))
