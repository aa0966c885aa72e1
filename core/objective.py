"""The GRPO objective as a diagnostic: how far a library moves the frozen model (DESIGN 2.9).

pi_0 is the model without the library, pi_E the same model with it. Everything is computed from the log-probabilities of
the tokens of a reply y under both, in nats. Nothing is optimised here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

CLIP = 0.2
"""Clip range delta of the surrogate."""

MOST_LOG_RATIO = 700.0
"""exp() of more does not fit into a float."""


class Surrogate(NamedTuple):
    """The clipped surrogate over some replies."""

    value: float
    """Mean over the replies; the loss is its negative. Above 0: the library makes better replies likelier."""
    clipped: float
    """Share of the replies where the clip decides, in [0, 1]."""


def log_ratio(moved: Sequence[float], base: Sequence[float]) -> float:
    """log(pi_moved(y|x) / pi_base(y|x)) of one reply, in nats.

    Args:
        moved: log-probability of each token of y under the one policy, shape [tokens].
        base: the same under the other one.

    Raises:
        ValueError: they are not of the same length, so not of the same tokens.
    """
    return math.fsum(m - b for m, b in zip(moved, base, strict=True))


def importance_ratio(moved: Sequence[float], base: Sequence[float]) -> float:
    """The ratio rho = pi_moved(y|x) / pi_base(y|x) of one reply; above 0 and finite."""
    return math.exp(min(MOST_LOG_RATIO, log_ratio(moved, base)))


def clipped_surrogate(ratios: Sequence[float], advantages: Sequence[float], delta: float = CLIP) -> Surrogate:
    """The mean of min(rho A, clip(rho, 1 - delta, 1 + delta) A): the GRPO loss of the seeds, negated, without its KL.

    Args:
        ratios: rho_i = pi_E / pi_0 of replies that pi_0 made, shape [replies].
        advantages: A_i of the same replies.
        delta: clip range, in (0, 1).

    Raises:
        ValueError: there is no reply, or the lengths differ.
    """
    if not ratios:
        raise ValueError("there is no reply to take the mean of")
    total, clipped = 0.0, 0
    for rho, a in zip(ratios, advantages, strict=True):
        plain, held = rho * a, min(max(rho, 1 - delta), 1 + delta) * a
        total += min(plain, held)
        clipped += held < plain
    return Surrogate(total / len(ratios), clipped / len(ratios))


def kl_k1(moved: Sequence[float], base: Sequence[float]) -> float:
    """The estimate k1 = -log r of KL(pi_moved || pi_base), with r = pi_base / pi_moved, of one y drawn from pi_moved.

    Unbiased; a single one may be below 0 (Schulman 2020, "Approximating KL Divergence").
    """
    return log_ratio(moved, base)


def kl_k3(moved: Sequence[float], base: Sequence[float]) -> float:
    """The same by k3 = (r - 1) - log r, token by token and summed; never below 0 (Schulman 2020).

    Given the tokens before it, each term has the mean of that token's KL, so the sum is unbiased for the whole reply.
    So would k3 of the whole reply at once be, but its r spans many orders of magnitude.
    """
    total = 0.0
    for m, b in zip(moved, base, strict=True):
        log_r = min(MOST_LOG_RATIO, b - m)
        total += math.expm1(log_r) - log_r
    return total


class Mean(NamedTuple):
    """A mean over samples."""

    mean: float
    se: float | None
    """Standard error; None of a single sample."""


def mean_of(values: Sequence[float]) -> Mean | None:
    """The mean and its standard error, with n - 1; None without values."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Mean(mean, None)
    variance = math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return Mean(mean, math.sqrt(variance / len(values)))
