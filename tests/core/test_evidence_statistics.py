"""The statistics against computations written again from their definitions, and what chance alone brings about."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evidence import Table
from core.evidence import contrast as contrast_table
from core.evidence.cmh import max_t, test_columns
from core.evidence.features import Feature
from core.extraction.from_evidence import propose
from tests.core.test_evidence import planted, seen

test_columns.__test__ = False  # type: ignore[attr-defined]  # it is no test


def make_table(groups: Sequence[tuple[Sequence[float], Sequence[Sequence[bool]]]]) -> Table:
    """From each group's rewards, and its columns row by row."""
    rewards = np.array([y for ys, _ in groups for y in ys], dtype=np.float64)
    strata = np.repeat(np.arange(len(groups)), [len(ys) for ys, _ in groups])
    holds = np.array([row for _, rows in groups for row in rows], dtype=np.bool_)
    means = np.array([np.mean(ys) for ys, _ in groups])[strata]
    return Table(
        rollout_ids=tuple(f"r{i}" for i in range(len(rewards))),
        group_ids=tuple(f"g{i}" for i in range(len(groups))),
        strata=strata,
        wins=rewards > means + 1e-12,
        losses=rewards < means - 1e-12,
        rewards=rewards,
        columns=tuple(Feature(f"f{i}", f"did {i}", "steps") for i in range(holds.shape[1])),
        holds=holds,
    )


def random_table(seed: int, groups: int, levels: Sequence[float], columns: int = 3) -> Table:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(groups):
        size = int(rng.integers(3, 9))
        rewards = list(rng.choice(levels, size=size))
        rewards[0], rewards[1] = min(levels), max(levels)
        made.append((rewards, (rng.random((size, columns)) < 0.5).tolist()))
    return make_table(made)


# --- the statistic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_binary_rewards_give_the_test_of_mantel_and_haenszel(seed: int) -> None:
    """Moments of the hypergeometric distribution, group by group."""
    table = random_table(seed, groups=7, levels=[0.0, 1.0])
    tested = test_columns(table, [0, 1, 2])
    for column in range(3):
        a = e = v = up = down = 0.0
        for group in range(table.groups):
            rows = table.strata == group
            held, won = table.holds[rows, column], table.rewards[rows] == 1
            n, w, m = len(won), int(won.sum()), int(held.sum())
            if 0 < m < n:  # else observed and expected are the same and nothing varies
                k = np.arange(n + 1)
                pmf = stats.hypergeom.pmf(k, n, w, m)
                mean = k @ pmf
                var = (k - mean) ** 2 @ pmf
                a, e, v = a + int((held & won).sum()), e + float(mean), v + float(var)
                cells = [(held & won).sum(), (held & ~won).sum(), (~held & won).sum(), (~held & ~won).sum()]
                p, q, r, s = (int(cell) + 0.5 for cell in cells)
                up, down = up + p * s / (n + 2), down + q * r / (n + 2)
        z = max(abs(a - e) - 0.5, 0) / math.sqrt(v)
        assert tested.statistic[column] == pytest.approx(z, rel=1e-9)
        assert tested.odds_ratio[column] == pytest.approx(up / down, rel=1e-9)


@pytest.mark.parametrize("levels", [[0.0, 0.5, 1.0], [-3.0, 0.25, 0.7, 10.0], [0.1, 0.40001, 0.9]])
def test_several_levels_give_the_mean_score_test_of_mantel(levels: list[float]) -> None:
    """Mean and variance over every way to place the feature among the rollouts of each group."""
    table = random_table(5, groups=5, levels=levels)
    tested = test_columns(table, [0, 1, 2])
    steps = [
        abs(a - b)
        for group in range(table.groups)
        for a, b in itertools.combinations(table.rewards[table.strata == group], 2)
        if abs(a - b) > 1e-9
    ]
    for column in range(3):
        observed = mean = variance = 0.0
        for group in range(table.groups):
            rows = table.strata == group
            rewards, held = table.rewards[rows], table.holds[rows, column]
            sums = [sum(c) for c in itertools.combinations(rewards, int(held.sum()))]
            observed, mean = observed + rewards[held].sum(), mean + float(np.mean(sums))
            variance += float(np.var(sums))
        z = max(abs(observed - mean) - min(steps) / 2, 0) / math.sqrt(variance)
        assert tested.statistic[column] == pytest.approx(z, rel=1e-9)


def test_the_gain_is_the_difference_of_means_within_groups() -> None:
    """With one group it is the plain difference; with several, weighted as Mantel and Haenszel weight them."""
    one = make_table([([1.0, 0.5, 0.0, 0.0], [[True], [True], [False], [False]])])
    assert test_columns(one, [0]).gain[0] == pytest.approx(0.75)
    table = random_table(8, groups=6, levels=[0.0, 0.5, 1.0])
    top = bottom = 0.0
    for group in range(table.groups):
        rows = table.strata == group
        held, rewards = table.holds[rows, 0], table.rewards[rows]
        if 0 < held.sum() < len(held):
            weight = held.sum() * (~held).sum() / len(held)
            top += weight * (rewards[held].mean() - rewards[~held].mean())
            bottom += weight
    assert test_columns(table, [0]).gain[0] == pytest.approx(top / bottom, rel=1e-9)


# --- the correction ----------------------------------------------------------------------------------------


def exact_step_down(table: Table) -> list[float]:
    """Westfall and Young over every permutation within groups, written from the definition."""
    columns = range(table.holds.shape[1])
    tested = test_columns(table, list(columns))
    rows = [np.flatnonzero(table.strata == g) for g in range(table.groups)]
    draws = []
    for orders in itertools.product(*(itertools.permutations(r) for r in rows)):
        rewards = table.rewards.copy()
        for own, order in zip(rows, orders, strict=True):
            rewards[own] = table.rewards[list(order)]
        z = []
        for column in columns:
            t = sum(
                rewards[own][table.holds[own, column]].sum()
                - rewards[own].mean() * table.holds[own, column].sum()
                for own in rows
            )
            z.append(max(abs(t) - 0.5, 0) / math.sqrt(tested.variance[column]))
        draws.append(z)
    drawn = np.array(draws)
    order = np.argsort(-tested.statistic, kind="stable")
    corrected, so_far = [0.0] * len(order), 0.0
    for place, column in enumerate(order):
        weaker = order[place:]
        reached = (drawn[:, weaker].max(axis=1) >= tested.statistic[column] - 1e-9).mean()
        so_far = max(so_far, float(reached))
        corrected[column] = so_far
    return corrected


def test_the_corrected_p_is_that_of_all_permutations_within_groups() -> None:
    table = make_table(
        [
            ([1, 1, 0, 0], [[True, False], [True, True], [False, True], [False, False]]),
            ([1, 0, 0, 0], [[True, True], [False, False], [False, True], [True, False]]),
            ([1, 0, 1], [[True, False], [False, False], [True, True]]),
        ]
    )
    kept = [0, 1]
    found = max_t(table, test_columns(table, kept), np.zeros(2, dtype=np.bool_), (3,), 20_000)
    assert list(found) == pytest.approx(exact_step_down(table), abs=0.015)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 9))
def test_a_correction_never_makes_a_finding_surer(seed: int, groups: int) -> None:
    table = random_table(seed, groups, [0.0, 0.5, 1.0], columns=6)
    tested = test_columns(table, list(range(6)))
    alone = [
        max_t(table, test_columns(table, [i]), np.zeros(1, dtype=np.bool_), (1,), 200)[0] for i in range(6)
    ]
    together = max_t(table, tested, np.zeros(6, dtype=np.bool_), (1,), 200)
    assert all(t >= a - 0.1 for t, a in zip(together, alone, strict=True))  # each is drawn anew
    order = np.argsort(-tested.statistic, kind="stable")
    assert (np.diff(together[order]) >= 0).all()


def test_words_are_corrected_over_everything_and_do_not_tax_the_rest() -> None:
    table = random_table(2, 12, [0.0, 1.0], columns=8)
    tested = test_columns(table, list(range(8)))
    words = np.array([False] * 4 + [True] * 4)
    mixed = max_t(table, tested, words, (1,), 4000)
    alone = max_t(table, test_columns(table, [0, 1, 2, 3]), np.zeros(4, dtype=np.bool_), (1,), 4000)
    everything = max_t(table, tested, np.zeros(8, dtype=np.bool_), (1,), 4000)
    assert list(mixed[:4]) == pytest.approx(list(alone), abs=0.04)
    assert list(mixed[4:]) == pytest.approx(list(everything[4:]), abs=0.04)


# --- chance ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [[0.0, 1.0], [0.0, 0.5, 1.0], list(np.linspace(0, 1, 41))])
def test_under_chance_the_smallest_corrected_p_is_below_its_level_no_more_often_than_said(
    levels: list[float],
) -> None:
    """Binary, graded and nearly continuous rewards (agents, ASO): at most 5 % plus three standard errors."""
    runs, level = 150, 0.05
    hits = halves = 0
    for seed in range(runs):
        found = contrast_table(random_table(seed, 8, levels, columns=10), permutations=120)
        smallest = min((f.p_corrected for f in found.findings), default=1.0)
        hits += smallest < level
        halves += smallest < 0.5
    assert hits <= runs * level + 3 * math.sqrt(runs * level * (1 - level))
    assert 0.3 < halves / runs < 0.65  # nor is it blind


def test_under_chance_few_runs_propose_anything() -> None:
    proposals = sum(
        bool(propose(seen(planted(8, effect=0, seed=1000 + s, size=5)), (), run_id="R", seed=s).drafts)
        for s in range(30)
    )
    assert (
        proposals <= 5
    )  # PROPOSE_BELOW .1 of 30, with two standard errors; the coverage rule takes most of them


def test_a_plain_effect_is_found_in_a_run_of_64_groups_of_5() -> None:
    found = seen(planted(64, effect=0.2, seed=7, size=5)).counts().contrast(["general"]).finding("one_word")
    assert found is not None
    assert found.p_corrected < 0.01
    assert found.odds_ratio > 2
