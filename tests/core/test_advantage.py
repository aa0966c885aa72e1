"""Advantages against the formulas as others write them down: numpy, scipy, TRL, nano-aha-moment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from core.advantage import EPSILON, SPREAD, advantages, mean_deviation, signal

FINITE = st.floats(-1e6, 1e6)
REWARDS = st.lists(st.none() | FINITE, max_size=12)
UNIT = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=12)


def known(values: Sequence[float | None]) -> list[float]:
    return [v for v in values if v is not None]


def teaches(rewards: Sequence[float]) -> bool:
    return max(rewards) - min(rewards) > SPREAD


@given(REWARDS)
@example([None, 3.0, None, 1.0])
def test_advantages_are_the_formula_of_the_paper_over_the_scored_rollouts(
    rewards: list[float | None],
) -> None:
    scored = known(rewards)
    found = advantages(rewards)
    assert [a is None for a in found] == [r is None or len(scored) < 2 for r in rewards]
    if len(scored) >= 2 and teaches(scored):
        expected = (np.array(scored) - np.mean(scored)) / (np.std(scored, ddof=1) + EPSILON)
        np.testing.assert_allclose(known(found), expected, rtol=1e-6, atol=1e-6)


@given(UNIT)
def test_with_the_epsilon_taken_out_they_are_the_z_scores_of_scipy(rewards: list[float]) -> None:
    if teaches(rewards):
        std = np.std(rewards, ddof=1)
        found = np.array(known(advantages(rewards))) * (std + EPSILON) / std
        np.testing.assert_allclose(found, stats.zscore(rewards, ddof=1), rtol=1e-9, atol=1e-12)


@given(UNIT)
def test_ours_differ_from_trl_only_by_its_epsilon(rewards: list[float]) -> None:
    """TRL: (r - mean) / (std + 1e-4), its std with G - 1 too."""
    std = np.std(rewards, ddof=1)
    trl = (np.array(rewards) - np.mean(rewards)) / (std + 1e-4)
    ours = np.array(known(advantages(rewards)))
    np.testing.assert_allclose(ours * (std + EPSILON), trl * (std + 1e-4), rtol=1e-9, atol=1e-12)
    assert np.abs(ours - trl).max() <= np.abs(ours).max() * (1e-4 - EPSILON) / (std + 1e-4) + 1e-12


@given(UNIT)
def test_dividing_by_the_size_of_the_group_would_give_larger_ones_by_a_known_factor(
    rewards: list[float],
) -> None:
    """nano-aha-moment: (r - mean) / (std + 1e-4), std with G in the denominator."""
    if teaches(rewards):
        n = len(rewards)
        theirs = (np.array(rewards) - np.mean(rewards)) / (np.std(rewards) + 1e-4)
        back = theirs * (np.std(rewards) + 1e-4) / (np.std(rewards) * math.sqrt(n / (n - 1)) + EPSILON)
        np.testing.assert_allclose(known(advantages(rewards)), back, rtol=1e-9, atol=1e-12)


def test_unscored_rollouts_do_not_drag_the_baseline() -> None:
    with_none = advantages([1.0, None, 0.0, None])
    assert known(with_none) == advantages([1.0, 0.0])


@given(REWARDS, st.data())
def test_where_the_unscored_rollouts_stand_does_not_matter(
    rewards: list[float | None], data: st.DataObject
) -> None:
    moved = known(rewards)
    for _ in range(len(rewards) - len(moved)):
        moved.insert(data.draw(st.integers(0, len(moved))), None)  # type: ignore[arg-type]
    assert known(advantages(moved)) == known(advantages(rewards))


@given(UNIT, st.data())
def test_in_another_order_every_rollout_keeps_its_advantage(
    rewards: list[float], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(rewards))))
    found = known(advantages(rewards))
    np.testing.assert_allclose(
        known(advantages([rewards[i] for i in order])), [found[i] for i in order], atol=1e-12
    )


@given(UNIT, st.floats(-100, 100), st.floats(0.01, 100))
def test_a_shift_and_a_scale_of_the_rewards_change_nothing_but_for_the_epsilon(
    rewards: list[float], shift: float, scale: float
) -> None:
    other = known(advantages([scale * r + shift for r in rewards]))
    np.testing.assert_allclose(known(advantages(rewards)), other, rtol=1e-4, atol=1e-6)


def test_one_scored_rollout_has_nothing_to_be_compared_with() -> None:
    assert advantages([1.0, None]) == [None, None]
    assert advantages([1.0]) == [None]
    assert advantages([]) == []


def test_equal_rewards_have_no_advantage_however_large_they_are() -> None:
    assert advantages([1e9, 1e9, 1e9]) == [0.0, 0.0, 0.0]
    assert advantages([0.1 + 0.2, 0.3]) == [0.0, 0.0]


def test_a_spread_of_rounding_errors_is_none() -> None:
    assert advantages([0.5, 0.5 + 1e-12, None]) == [0.0, 0.0, None]
    assert signal([0.5, 0.5 + 1e-12], 0).status == "uninformative"


def test_a_small_spread_is_damped_by_the_epsilon_as_the_formula_says() -> None:
    rewards = [0.0, 2e-8]
    expected = (np.array(rewards) - 1e-8) / (np.std(rewards, ddof=1) + 1e-8)
    np.testing.assert_allclose(known(advantages(rewards)), expected, rtol=1e-9)


@pytest.mark.parametrize("large", [1e101, 1e300, 1.7e308])
def test_huge_rewards_keep_their_order_and_do_not_overflow(large: float) -> None:
    np.testing.assert_allclose(known(advantages([large, -large, 0.0])), [1.0, -1.0, 0.0], atol=1e-12)
    assert mean_deviation([large, -large]) == pytest.approx(large)
    close = [large, large * (1 - 1e-12)]
    np.testing.assert_allclose(known(advantages(close)), [math.sqrt(0.5), -math.sqrt(0.5)], rtol=1e-3)
    assert signal(close, 0).status == "informative"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_reward_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        advantages([bad, 1.0])


@given(st.lists(st.none() | FINITE, max_size=9))
def test_the_mean_deviation_is_the_mean_distance_to_the_mean(rewards: list[float | None]) -> None:
    scored = known(rewards)
    expected = np.abs(np.array(scored) - np.mean(scored)).mean() if scored else 0.0
    assert mean_deviation(rewards) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("rewards", "errors", "status", "reason"),
    [
        ([0.5, 0.5], 0, "uninformative", "all equal: reward 0.5"),
        ([1.0, 1.0, None], 0, "uninformative", "all right"),
        ([0.0, 0.0], 0, "uninformative", "all wrong"),
        ([1.0, None, None], 2, "uninformative", "too few scored: 1 of 3"),
        ([None, None], 2, "failed", "all failed: 2 of 2 rollouts broke off"),
        ([None, None], 0, "failed", "no rollout could be scored"),
        ([0.0, 1.0, None], 1, "informative", ""),
    ],
)
def test_a_group_says_why_it_does_not_teach(
    rewards: list[float], errors: int, status: str, reason: str
) -> None:
    assert signal(rewards, errors) == (status, reason)


@pytest.mark.parametrize("rewards", [[-1.0, 1.0], [0.5, 1.5], [0.99, 1.0], [-3.0, -2.0], [0.0, 1e-6]])
def test_y11_a_group_whose_rewards_differ_teaches_wherever_its_mean_lies(rewards: list[float]) -> None:
    assert signal(rewards, 0).status == "informative"
    assert all(a for a in advantages(rewards))


def test_y26_almost_right_is_told_apart_from_right_by_its_spread_not_by_being_one() -> None:
    better, worse = known(advantages([0.99, 0.5]))
    assert better > 0 > worse
    assert known(advantages([0.99, 1.0]))[0] < 0
