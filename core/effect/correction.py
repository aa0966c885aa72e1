"""P values corrected over all that were tried together."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values so that the chance of any false finding stays at the level: Holm 1979.

    "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6. Holds under
    any dependence.

    Returns:
        Adjusted values in the same order; one at or below the level is a finding.

    Raises:
        ValueError: a p value lies outside [0, 1].

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = _order(p_values)
    adjusted, highest, m = [0.0] * len(order), 0.0, len(order)
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (m - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust p values so that the expected share of false findings among all findings stays at the level.

    Benjamini and Hochberg 1995, "Controlling the False Discovery Rate", Journal of the Royal Statistical Society
    B 57. Holds for independent tests and for the positive dependence of tests that share a baseline (Benjamini
    and Yekutieli 2001).

    Returns:
        Adjusted values in the same order; one at or below the level is a finding.

    Raises:
        ValueError: a p value lies outside [0, 1].

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    order = _order(p_values)
    adjusted, lowest, m = [0.0] * len(order), 1.0, len(order)
    for rank in range(m, 0, -1):
        i = order[rank - 1]
        lowest = min(lowest, p_values[i] * m / rank)
        adjusted[i] = lowest
    return adjusted


def _order(p_values: Sequence[float]) -> list[int]:
    for p in p_values:
        if not (math.isfinite(p) and 0 <= p <= 1):
            raise ValueError(f"{p} is no p value")
    return sorted(range(len(p_values)), key=lambda i: p_values[i])
