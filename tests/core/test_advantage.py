from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.advantage import EPSILON, advantages, mean_deviation, signal

FINITE = st.floats(-1e6, 1e6)
REWARDS = st.lists(st.none() | FINITE, max_size=12)


@given(REWARDS)
def test_advantages_are_the_formula_of_the_paper_over_the_scored_rollouts(
    rewards: list[float | None],
) -> None:
    scored = [r for r in rewards if r is not None]
    found = advantages(rewards)
    assert [a is None for a in found] == [r is None or len(scored) < 2 for r in rewards]
    if len(scored) >= 2 and max(scored) - min(scored) > 1e-9:
        expected = (np.array(scored) - np.mean(scored)) / (np.std(scored, ddof=1) + EPSILON)
        got = [a for a in found if a is not None]
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_unscored_rollouts_do_not_drag_the_baseline() -> None:
    with_none = advantages([1.0, None, 0.0, None])
    assert [a for a in with_none if a is not None] == advantages([1.0, 0.0])


def test_one_scored_rollout_has_nothing_to_be_compared_with() -> None:
    assert advantages([1.0, None]) == [None, None]


def test_equal_rewards_have_no_advantage_however_large_they_are() -> None:
    assert advantages([1e9, 1e9, 1e9]) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        advantages([bad, 1.0])


def test_ours_differ_from_trl_only_by_its_epsilon() -> None:
    rewards = [0.1, 0.5, 0.9, 0.9]
    std = statistics.stdev(rewards)
    trl = [(r - statistics.mean(rewards)) / (std + 1e-4) for r in rewards]
    ours = advantages(rewards)
    np.testing.assert_allclose(
        [a for a in ours if a is not None], np.array(trl) * (std + 1e-4) / (std + EPSILON)
    )


@given(st.lists(FINITE, min_size=1, max_size=9))
def test_the_mean_deviation_is_the_mean_distance_to_the_mean(rewards: list[float]) -> None:
    expected = np.abs(np.array(rewards) - np.mean(rewards)).mean()
    assert mean_deviation(rewards) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("rewards", "errors", "status", "reason"),
    [
        ([-1.0, 1.0], 0, "informative", ""),
        ([0.5, 0.5], 0, "uninformative", "all equal: reward 0.5"),
        ([1.0, 1.0, None], 0, "uninformative", "all right"),
        ([0.0, 0.0], 0, "uninformative", "all wrong"),
        ([1.0, None, None], 2, "uninformative", "too few scored: 1 of 3"),
        ([None, None], 2, "failed", "all failed: 2 of 2 rollouts broke off"),
        ([None, None], 0, "failed", "no rollout could be scored"),
        ([0.0, 1.0, None], 1, "informative", ""),
    ],
)
def test_a_group_teaches_by_its_spread_and_says_why_it_does_not(
    rewards: list[float | None], errors: int, status: str, reason: str
) -> None:
    assert signal(rewards, errors) == (status, reason)
