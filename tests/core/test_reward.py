from __future__ import annotations

import pytest

from core.reward import group_rewards
from core.rollout import Score


def scores(**values: float | None) -> dict[str, Score]:
    return {name: Score(value=value) for name, value in values.items()}


def test_a_reward_is_the_weighted_mean_of_the_scores() -> None:
    made = group_rewards([scores(exact=1.0, form=0.5), scores(exact=0.0, form=1.0)], {"exact": 3.0})
    assert made.values == (pytest.approx(0.875), pytest.approx(0.25))


def test_a_score_that_one_rollout_lacks_is_left_out_for_the_whole_group() -> None:
    made = group_rewards([scores(exact=1.0, judge=0.2), scores(exact=0.0, judge=None)])
    assert made.values == (1.0, 0.0)
    assert made.used == ("exact",)
    assert "judge" in made.left_out


def test_with_nothing_known_for_all_a_rollout_without_its_score_is_unscored_not_wrong() -> None:
    made = group_rewards([scores(exact=1.0), scores(exact=None), scores(exact=0.0)])
    assert made.values == (1.0, None, 0.0)


def test_a_rollout_that_broke_off_is_unscored_and_takes_nothing_from_its_siblings() -> None:
    made = group_rewards([None, scores(exact=1.0), scores(exact=0.0)])
    assert made.values == (None, 1.0, 0.0)
    assert made.used == ("exact",)


def test_a_weight_of_zero_takes_a_score_out() -> None:
    made = group_rewards([scores(exact=1.0, form=0.0)], {"form": 0.0})
    assert made.values == (1.0,)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="weight of 'exact'"):
        group_rewards([scores(exact=1.0)], {"exact": bad})
