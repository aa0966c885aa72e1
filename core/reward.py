"""The extrinsic reward of a rollout: the weighted mean of its scores (DESIGN 2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.rollout import Score


class Rewards(NamedTuple):
    """Rewards of one group, and which scores they were made of."""

    values: tuple[float | None, ...]
    """Shape [G]; None where a rollout could not be scored."""
    used: tuple[str, ...]
    left_out: dict[str, str]
    """Scores that took no part, with the reason."""


def group_rewards(
    scores: Sequence[Mapping[str, Score] | None], weights: Mapping[str, float] | None = None
) -> Rewards:
    """Weigh the scores of the G rollouts of one group.

    A score that some rollout of the group lacks is left out for all of them, so that rewards of one group are
    always made of the same parts; if that left nothing, all scores are kept and the rollouts that lack one are
    unscored.

    Args:
        scores: verdicts by verifier name for each rollout, shape [G]; None for a rollout that broke off.
        weights: by verifier name, at least 0; 1 where absent.

    Raises:
        ValueError: a weight is negative, NaN or infinite.
    """
    weigh = dict(weights or {})
    if bad := [n for n, w in weigh.items() if not (math.isfinite(w) and w >= 0)]:
        raise ValueError(f"the weight of {bad[0]!r} must be a number of at least 0")
    ended = [s for s in scores if s is not None]
    names = sorted({name for s in ended for name in s if weigh.get(name, 1.0) > 0})
    known = [n for n in names if all(n in s and s[n].value is not None for s in ended)]
    used = known or names
    left_out = {n: "not known for every rollout of the group" for n in names if n not in used}
    return Rewards(tuple(_mean(s, used, weigh) for s in scores), tuple(used), left_out)


def _mean(
    scores: Mapping[str, Score] | None, used: Sequence[str], weights: Mapping[str, float]
) -> float | None:
    if scores is None or not used:
        return None
    total = weight_sum = 0.0
    for name in used:
        value = scores[name].value if name in scores else None
        if value is None:
            return None
        weight = weights.get(name, 1.0)
        total += weight * value
        weight_sum += weight
    return total / weight_sum
