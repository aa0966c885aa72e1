"""Group-relative advantage, and whether a group can teach at all (DESIGN 2.1).

A_i = (r_i - mean) / (std + EPSILON), std with G - 1 in the denominator: equation `grpo-advantage` of the
Agent-GRPO paper, section 2. TRL standardises with 1e-4 instead of 1e-8, nano-aha-moment divides by G, and
nanochat not at all; so advantages computed there differ from these, by the epsilon in TRL's case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from core.rollout import GroupStatus

EPSILON = 1e-8
HUGE = 1e100
"""Sums of larger rewards could overflow."""
SPREAD = 1e-9
"""Rewards that differ by no more than this are equal."""


def advantages(rewards: Sequence[float | None]) -> list[float | None]:
    """Standardise the rewards of one group.

    Unscored rollouts (None) take no part: they move neither mean nor std, and stay None. With fewer than two
    scored rollouts nothing can be compared: all are None. Equal rewards give zeros.

    Args:
        rewards: rewards of the G rollouts of one task, shape [G]; any finite numbers.

    Returns:
        Advantages in the same order, shape [G].

    Raises:
        ValueError: a reward is NaN or infinite.

    >>> [a and round(a, 3) for a in advantages([1.0, 0.0, None])]
    [0.707, -0.707, None]
    """
    scored = [r for r in rewards if r is not None]
    if not all(math.isfinite(r) for r in scored):
        raise ValueError("a reward is NaN or infinite; an unscored rollout has the reward None")
    if len(scored) < 2:
        return [None] * len(rewards)
    if max(scored) - min(scored) <= SPREAD:
        return [None if r is None else 0.0 for r in rewards]
    scale = _scale(scored)
    mean = math.fsum(r / scale for r in scored) / len(scored)
    std = math.hypot(*(r / scale - mean for r in scored)) / math.sqrt(len(scored) - 1)
    return [None if r is None else (r / scale - mean) / (std + EPSILON / scale) for r in rewards]


def mean_deviation(rewards: Sequence[float | None]) -> float:
    """Mean unwhitened advantage, mean_i |r_i - mean|: decides conflicts (DESIGN 2.6). 0 with nothing scored."""
    scored = [r for r in rewards if r is not None]
    if not scored:
        return 0.0
    scale = _scale(scored)
    mean = math.fsum(r / scale for r in scored) / len(scored)
    return math.fsum(abs(r / scale - mean) / len(scored) for r in scored) * scale


def _scale(rewards: Sequence[float]) -> float:
    """What rewards are divided by before they are summed, lest the sum overflow; 1 but for huge ones."""
    largest = max(map(abs, rewards))
    return largest if largest > HUGE else 1.0


class Signal(NamedTuple):
    """Whether a group teaches, and if not, why."""

    status: GroupStatus
    reason: str


def signal(rewards: Sequence[float | None], errors: int, *, graded: bool = True) -> Signal:
    """Tell whether a group is informative: two scored rollouts that differ in extrinsic reward.

    The test is on the spread, not on 0 < mean < 1: [-1, +1] teaches, [0.5, 0.5] does not.

    Args:
        rewards: extrinsic rewards of all G rollouts, shape [G]; None = not scored.
        errors: how many of the unscored ones broke off with an error.
        graded: whether 1 means right and 0 wrong (`core.reward.graded`); else equal rewards are told as numbers.
    """
    scored = [r for r in rewards if r is not None]
    if not scored:
        if errors == len(rewards) > 0:
            return Signal("failed", f"all failed: {errors} of {len(rewards)} rollouts broke off")
        return Signal("failed", "no rollout could be scored")
    if len(scored) == 1:
        return Signal("uninformative", f"too few scored: 1 of {len(rewards)}")
    if max(scored) - min(scored) > SPREAD:
        return Signal("informative", "")
    if graded and abs(scored[0] - 1) <= SPREAD:
        return Signal("uninformative", "all right")
    if graded and abs(scored[0]) <= SPREAD:
        return Signal("uninformative", "all wrong")
    return Signal("uninformative", f"all equal: reward {scored[0] + 0.0:g}")  # -0.0 is 0
