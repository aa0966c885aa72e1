"""The distributions that the tests need, without scipy: the standard normal, Student's t, and t with an effect."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

NORMAL = NormalDist()

MANY = 5_000
"""From so many degrees of freedom on, t is taken for normal: the quantile for 95 % is 1.9604 there, not 1.9600."""


def student_cdf(t: float, df: int) -> float:
    """P(T <= t) for Student's t with a whole number of degrees of freedom, 1 or more.

    The finite series in theta = atan(t / sqrt(df)) of Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    if df >= MANY:
        return NORMAL.cdf(t)
    theta = math.atan(t / math.sqrt(df))
    cosine = math.cos(theta)
    term, total = cosine if df % 2 else 1.0, 0.0
    for j in range(df % 2 + 1, df, 2):
        total += term
        term *= cosine**2 * j / (j + 1)
    within = math.sin(theta) * total
    if df % 2:
        within = (theta + within) * 2 / math.pi
    return min(max((1 + within) / 2, 0.0), 1.0)


@lru_cache(maxsize=1024)
def student_quantile(p: float, df: int) -> float:
    """The value that Student's t stays below with probability p, in (0, 1)."""
    if p < 0.5:
        return -student_quantile(1 - p, df)
    low, high = 0.0, 2.0
    while student_cdf(high, df) < p:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        if student_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return high


def noncentral_upper(t: float, df: int, shift: float) -> float:
    """P(T > t) for (Z + shift) / S, Z normal and S^2 an independent chi-squared over its df: noncentral t.

    The integral of Phi(shift - t s) over the density of S, by Gauss and Legendre.
    """
    if df >= MANY:
        return NORMAL.cdf(shift - t)
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(120)
    low, high = max(0.0, 1 - 9 / math.sqrt(2 * df)), 1 + 9 / math.sqrt(2 * df)
    s = (low + high) / 2 + (high - low) / 2 * nodes
    log_density = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2)
    density = np.exp(log_density + (df - 1) * np.log(s) - df * s**2 / 2)
    above = np.array([NORMAL.cdf(shift - t * x) for x in s])
    return float((weights * density) @ above * (high - low) / 2)
