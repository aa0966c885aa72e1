"""The paired permutation test: the sign of every task's difference flipped at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.advantage import SPREAD

EXACT = 14
"""With at most so many tasks that differ, all flips are gone through: 2^14 = 16,384."""

FLIPS = 20_000
"""Else so many are drawn."""


class SignFlip(NamedTuple):
    """P values of the sign-flip test."""

    two_sided: float
    greater: float


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> SignFlip:
    """Test whether differences are as often up as down, by as much: Fisher's randomisation test for pairs.

    R. A. Fisher 1935, "The Design of Experiments", section 21. Where the arm does nothing to any task, the
    samples of both arms are exchangeable within the task and the test is exact. Tasks without a difference change
    nothing. With more than EXACT that differ the flips are drawn, and the observed one is counted among them:
    p = (hits + 1) / (draws + 1) is never 0 and still valid (Phipson and Smyth 2010).
    """
    import numpy as np

    values = np.array([d for d in differences if abs(d) > SPREAD])
    observed, n = float(values.sum()), len(values)
    if n <= EXACT:
        places = np.arange(2**n)[:, None] >> np.arange(n)
        sums, extra = (1 - 2 * (places & 1)) @ values, 0
    else:
        signs = np.random.default_rng(seed).integers(0, 2, (FLIPS, n), dtype=np.int8)
        sums, extra = (1 - 2 * signs) @ values, 1
    draws = len(sums) + extra
    greater = np.count_nonzero(sums >= observed - SPREAD) + extra
    either = np.count_nonzero(np.abs(sums) >= abs(observed) - SPREAD) + extra
    return SignFlip(float(either / draws), float(greater / draws))
