"""What n samples of one task say about k of them: Mean@k, pass@k, pass^k.

All three are unbiased: their mean over draws of n samples is the true value for k fresh ones. A figure over tasks
is the plain mean of theirs; a task without a scored sample has none (None) and is counted apart, never as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from core.advantage import SPREAD

SUCCESS = 1.0
"""A sample passes with a reward of at least this much, unless the caller names another threshold."""


class Successes(NamedTuple):
    """How many samples of a task were scored, and how many of these passed."""

    n: int
    c: int


def successes(rewards: Sequence[float | None], threshold: float = SUCCESS) -> Successes:
    """Count the scored samples of one task and those whose reward reaches the threshold.

    >>> successes([1.0, 0.5, None, 1.0])
    Successes(n=3, c=2)
    """
    scored = [r for r in rewards if r is not None]
    return Successes(len(scored), sum(r >= threshold - SPREAD for r in scored))


def mean_at_k(rewards: Sequence[float | None]) -> float | None:
    """Mean@k of one task: the mean reward of its scored samples; None where none is scored."""
    scored = [r for r in rewards if r is not None]
    return math.fsum(scored) / len(scored) if scored else None


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of k samples passes, from c of n that did: 1 - C(n - c, k) / C(n, k).

    Unbiased, unlike 1 - (1 - c / n)^k. Chen et al. 2021, "Evaluating Large Language Models Trained on Code",
    equation 1.

    Raises:
        ValueError: not 0 <= c <= n, or not 1 <= k <= n: k samples cannot be told from fewer.

    >>> pass_at_k(4, 1, 2)
    0.5
    """
    _check(n, c, k)
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of k samples pass ("pass^k"), from c of n that did: C(c, k) / C(n, k).

    Yao et al. 2024, "tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains".

    Raises:
        ValueError: as `pass_at_k`.

    >>> pass_hat_k(4, 2, 2)
    0.16666666666666666
    """
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} samples cannot have passed")
    if not 1 <= k <= n:
        raise ValueError(f"{n} scored samples say nothing about {k}: k lies between 1 and n")
