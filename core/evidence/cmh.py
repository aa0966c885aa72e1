"""The test of Cochran, Mantel and Haenszel over all features at once, and its correction by max-T.

Stratified by group (1959): rollouts are only ever compared with others of their own group, so an easy task
cannot lend its habits to a good result. Where rewards have more than two levels, they enter as scores (Mantel
1963): half marks for a right answer in the wrong form lie between right and wrong, and with two levels it is
the usual test. Correction over all features tried: step-down max-T (Westfall and Young 1993), rewards
permuted within groups. Words are only shown, never made into a lesson, so they do not tax the others: the p
value of a word is corrected over all features, that of any other feature over all but the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.advantage import SPREAD
from core.evidence.table import Bools, Table

MAX_CELLS = 1_000_000
"""Permuted rewards held at once (8 MB)."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tested:
    """The tested columns; every array but `held` has shape [columns]."""

    kept: Sequence[int]
    """Their places in the table."""
    held: Bools
    """Shape [rows, columns]."""
    centred: Floats
    """Rewards less the mean of their group; shape [rows]."""
    variance: Floats
    statistic: Floats
    """|z|."""
    gain: Floats
    odds_ratio: Floats
    groups: Floats
    """In how many groups the feature varies."""


def test_columns(table: Table, kept: Sequence[int]) -> Tested:
    """Test columns against the rewards within groups.

    For a group of n rollouts, m with the feature, y the rewards less their mean: T sums y over the rollouts
    with the feature, E T = 0, and V = m (n - m) / (n (n - 1)) * sum y^2. For rewards of 0 and 1 this is
    a - w m / n and w (n - w) m (n - m) / (n^2 (n - 1)), as Mantel and Haenszel have it. Permuting the
    rewards within groups leaves V as it is.
    """
    held = table.holds[:, kept]
    n = table.sizes.astype(np.float64)
    centred = table.rewards - (np.bincount(table.strata, weights=table.rewards) / n)[table.strata]
    squares = np.bincount(table.strata, weights=centred**2)
    m = table.by_group(held)
    shared = m * (n[:, None] - m) / n[:, None]
    difference = centred @ held
    variance = (shared * (squares / np.maximum(n - 1, 1))[:, None]).sum(axis=0)
    return Tested(
        kept=kept,
        held=held,
        centred=centred,
        variance=variance,
        statistic=_statistic(difference, variance, _half_step(table)),
        gain=difference / shared.sum(axis=0),
        odds_ratio=_odds_ratios(held, table),
        groups=(shared > 0).sum(axis=0).astype(np.float64),
    )


def _half_step(table: Table) -> float:
    """Half the smallest difference between two rewards of a group: 1/2 for rewards of 0 and 1."""
    order = np.lexsort((table.rewards, table.strata))
    steps = np.diff(table.rewards[order])[np.diff(table.strata[order]) == 0]
    return float(steps[steps > SPREAD].min()) / 2


def _statistic(difference: Floats, variance: Floats, half_step: float) -> Floats:
    """|z|, with the continuity correction that keeps p honest for small counts (as R does by default)."""
    return np.maximum(np.abs(difference) - half_step, 0.0) / np.sqrt(np.maximum(variance, 1e-300))


def _odds_ratios(held: Bools, table: Table) -> Floats:
    """Mantel-Haenszel, winners against losers, pooled over the groups in which the feature varies.

    0.5 is added to each cell.
    """
    wins, losses = table.wins[:, None], table.losses[:, None]
    a, b = table.by_group(held & wins), table.by_group(held & losses)
    c, d = table.by_group(~held & wins), table.by_group(~held & losses)
    m, n = table.by_group(held), table.sizes[:, None]
    weight = ((m > 0) & (m < n)) / (a + b + c + d + 2)
    up = ((a + 0.5) * (d + 0.5) * weight).sum(axis=0)
    down = ((b + 0.5) * (c + 0.5) * weight).sum(axis=0)
    return np.asarray(up / down, dtype=np.float64)


# --- max-T -------------------------------------------------------------------------------------------


def max_t(table: Table, tested: Tested, is_word: Bools, seed: Sequence[int], permutations: int) -> Floats:
    """Corrected p of each column, shape [columns]."""
    rng, half_step = np.random.default_rng(seed), _half_step(table)
    held = tested.held.astype(np.float64)
    families = [np.arange(len(is_word))]  # a word competes with all, everything else with all but the words
    if is_word.any() and not is_word.all():
        families.append(np.flatnonzero(~is_word))
    as_strong = [np.zeros(len(family)) for family in families]
    left = permutations
    while left > 0:  # piece by piece, so that a large import does not fill the memory
        size = min(left, max(1, MAX_CELLS // max(table.rows, 1)))
        drawn = _statistic(_permuted(table, tested.centred, rng, size) @ held, tested.variance, half_step)
        for i, family in enumerate(families):
            as_strong[i] += _at_least_as_strong(tested.statistic[family], drawn[:, family])
        left -= size
    corrected = np.ones(len(is_word))
    for count, family in zip(as_strong, families, strict=True):
        order = np.argsort(-tested.statistic[family], kind="stable")
        corrected[family[order]] = np.maximum.accumulate((1 + count[order]) / (permutations + 1))
    return corrected


def _at_least_as_strong(statistic: Floats, drawn: Floats) -> Floats:
    """How many permutations reach each statistic with the largest of that column and all weaker ones.

    Args:
        statistic: observed, shape [columns].
        drawn: under permuted rewards, shape [permutations, columns].
    """
    order = np.argsort(-statistic, kind="stable")
    worst = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    counts = np.empty_like(statistic)
    counts[order] = (worst >= statistic[order] - 1e-9).sum(axis=0)
    return counts


def _permuted(table: Table, values: Floats, rng: np.random.Generator, permutations: int) -> Floats:
    """Values of the rows shuffled within each group; shape [permutations, rows]."""
    shuffled = np.empty((permutations, len(values)))
    for size in np.unique(table.sizes):  # groups of one size together
        rows = np.flatnonzero(table.sizes[table.strata] == size)
        drawn = np.broadcast_to(values[rows], (permutations, len(rows))).reshape(permutations, -1, size)
        shuffled[:, rows] = rng.permuted(drawn, axis=2).reshape(permutations, -1)
    return shuffled
