"""The paired permutation test: the sign of every task's difference flipped at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.advantage import SPREAD

EXACT = 14
"""Up to so many tasks that differ, all flips are gone through: 2^14 = 16,384."""

FLIPS = 20_000
"""Beyond that so many are drawn: at p = .05 the standard error is .0015."""


class SignFlip(NamedTuple):
    """P values of the sign-flip test; never 0."""

    two_sided: float
    """That the arms differ, in either direction."""
    greater: float
    """That the first arm is better."""


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> SignFlip:
    """Test whether tasks differ upwards as often and as much as downwards: Fisher's randomisation test for pairs.

    R. A. Fisher 1935, "The Design of Experiments", section 21. Where the arm does nothing to any task, the samples of
    both arms could be exchanged within each task: then the test is exact. Tasks without a difference change nothing.
    With more than EXACT that differ, FLIPS are drawn and the observed signs counted among them:
    (hits + 1) / (draws + 1) is never 0 and keeps its level (Phipson and Smyth 2010, "Permutation P-values Should
    Never Be Zero").

    Args:
        differences: of each task; shape [tasks].
        seed: of the draws.

    >>> sign_flip([0.5, 0.25, 0.0, 1.0])
    SignFlip(two_sided=0.25, greater=0.125)
    """
    import numpy as np

    values = np.array([d for d in differences if abs(d) > SPREAD])
    n = len(values)
    if n <= EXACT:
        flipped = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) @ values
    else:
        # Eight tasks at a time: what each pattern of flips among them amounts to is worked out once.
        eights = np.zeros((-(-n // 8), 8))
        eights.flat[:n] = values
        amounts = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) @ eights.T
        drawn = np.random.default_rng(seed).integers(0, 256, (FLIPS, len(eights)), dtype=np.uint8)
        flipped = amounts[drawn, np.arange(len(eights))].sum(axis=1)
    observed = float(values.sum())
    sums = observed - 2 * flipped
    itself = 0 if n <= EXACT else 1
    greater = int(np.count_nonzero(sums >= observed - SPREAD)) + itself
    either = int(np.count_nonzero(np.abs(sums) >= abs(observed) - SPREAD)) + itself
    return SignFlip(either / (len(sums) + itself), greater / (len(sums) + itself))
