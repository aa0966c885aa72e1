"""What a reward is made of, part by part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.reward import RECORDED, accepted, tools, verified, weigh
from core.rollout import Rollout, Score, Step
from core.settings import RewardConfig, VerifierSpec

VALUE = st.none() | st.floats(0, 1)


def scored(*, error: str | None = None, recorded: float | None = None, **values: float | None) -> Rollout:
    return Rollout(
        id="R1-0001-0",
        group_id="R1-0001",
        task_id="t",
        replicate=0,
        scores={name: Score(value=value) for name, value in values.items()},
        components={} if recorded is None else {RECORDED: recorded},
        error=error,
    )


def weighing(**weights: float) -> RewardConfig:
    return RewardConfig(verifier_weights=weights)


def calls(*success: bool | None) -> list[Step]:
    return [Step(tool="python", success=s) for s in success]


def test_the_verified_part_is_the_weighted_mean_of_the_scores() -> None:
    made = verified([scored(exact=1.0, form=0.5), scored(exact=0.0, form=1.0)], weighing(exact=3.0))
    assert made.values == (pytest.approx(0.875), pytest.approx(0.25))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8), st.floats(0.1, 9))
def test_weights_weigh_as_numpy_weighs(pairs: list[tuple[float, float]], weight: float) -> None:
    made = weigh([{"a": a, "b": b} for a, b in pairs], {"a": weight})
    np.testing.assert_allclose(made.values, np.average(pairs, axis=1, weights=[weight, 1.0]), atol=1e-12)


def test_a_score_that_one_rollout_lacks_is_left_out_for_the_whole_group() -> None:
    made = verified([scored(exact=1.0, judge=0.2), scored(exact=0.0, judge=None)], RewardConfig())
    assert made.values == (1.0, 0.0)
    assert made.used == ("exact",)
    assert set(made.left_out) == {"judge"}


@given(st.lists(st.fixed_dictionaries({"a": VALUE, "b": VALUE, "c": VALUE}), min_size=1, max_size=6))
def test_rewards_of_one_group_are_always_made_of_the_same_scores(
    group: list[dict[str, float | None]],
) -> None:
    made = weigh(group, {})
    for scores, value in zip(group, made.values, strict=True):
        parts = [scores[name] for name in made.used]
        lacks = any(p is None for p in parts)
        assert (value is None) == lacks
        assert lacks or value == pytest.approx(np.mean(np.array(parts, float)))


def test_with_nothing_known_for_all_a_rollout_without_its_score_is_unscored_not_wrong() -> None:
    made = verified([scored(exact=1.0), scored(exact=None), scored(exact=0.0)], RewardConfig())
    assert made.values == (1.0, None, 0.0)


def test_a_rollout_that_broke_off_is_unscored_and_takes_nothing_from_its_siblings() -> None:
    made = verified([scored(error="gone", exact=1.0), scored(exact=1.0), scored(exact=0.0)], RewardConfig())
    assert made.values == (None, 1.0, 0.0)
    assert made.used == ("exact",)


def test_a_weight_of_zero_takes_a_score_out() -> None:
    assert verified([scored(exact=1.0, form=0.0)], weighing(form=0.0)).values == (1.0,)


def test_a_recorded_reward_stands_in_place_of_the_scores_that_came_with_it() -> None:
    group = [scored(recorded=-1.5, exact=1.0), scored(recorded=0.3, exact=0.0), scored(exact=0.5)]
    assert verified(group, RewardConfig()).values == (-1.5, 0.3, 0.5)
    assert verified(group, weighing(recorded=0.0)).values == (1.0, 0.0, 0.5)


def test_a_verifier_of_the_run_counts_beside_a_recorded_reward() -> None:
    reward = RewardConfig(verifiers={"form": VerifierSpec(kind="regex")}, verifier_weights={"form": 3.0})
    assert verified([scored(recorded=1.0, exact=0.0, form=0.0)], reward).values == (0.25,)
    sibling = scored(exact=1.0, form=0.0)  # what it was scored elsewhere takes the place of a recorded reward
    assert verified([scored(recorded=1.0, form=1.0), sibling], reward).values == (1.0, 0.25)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_verifier_that_gives_no_number_is_named(bad: float) -> None:
    broken = scored().model_copy(update={"scores": {"judge": Score.model_construct(value=bad)}})
    with pytest.raises(InputError, match=r"verifier 'judge' gave .* for R1-0001-0"):
        verified([broken], RewardConfig())


def test_the_tools_part_is_the_share_of_calls_that_succeeded_and_no_result_is_no_success() -> None:
    assert tools(calls(True, True, False, None), RewardConfig()) == 0.5


def test_no_call_at_all_gives_one_as_in_the_paper_and_is_unknown_elsewhere() -> None:
    assert tools([], RewardConfig(preset="agent-paper")) == 1.0
    assert tools([], RewardConfig(preset="agent")) is None


def test_silence_counts_as_acceptance_only_where_it_was_asked_for_and_after_its_time() -> None:
    silent = RewardConfig(preset="agent", silence_accepts=True)
    assert accepted(None, silent, 119.9) is None
    assert accepted(None, silent, 120.0) == 1.0
    assert accepted(False, silent, 500.0) == 0.0
    assert accepted(None, RewardConfig(preset="agent"), 500.0) is None
    assert accepted(True, RewardConfig()) == 1.0
