"""The distributions that the tests need, without scipy: Student's t and the standard normal."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

NORMAL = NormalDist()


def student_cdf(t: float, df: int) -> float:
    """P(T <= t) for Student's t with a whole number of degrees of freedom.

    The finite series in theta = atan(t / sqrt(df)) of Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    theta = math.atan(t / math.sqrt(df))
    squared = math.cos(theta) ** 2
    term = math.cos(theta) if df % 2 else 1.0
    total = 0.0
    for j in range(df % 2 + 1, df, 2):
        total += term
        term *= squared * j / (j + 1)
    inside = math.sin(theta) * total
    if df % 2:
        inside = (theta + inside) * 2 / math.pi
    return min(max((1 + inside) / 2, 0.0), 1.0)


@lru_cache(maxsize=1024)
def student_quantile(p: float, df: int) -> float:
    """The t that Student's t stays below with probability p, 0 < p < 1."""
    if p < 0.5:
        return -student_quantile(1 - p, df)
    low, high = 0.0, 2.0
    while student_cdf(high, df) < p:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        if student_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
