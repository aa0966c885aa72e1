"""From what rollouts hold to rewards and status, for every preset, against numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.advantage import advantages
from core.errors import InputError
from core.reward import RECORDED
from core.rollout import UNGRADED, Group, Rollout, Score, Step
from core.settings import PRESETS, Component, Preset, RewardConfig
from core.settling import settle

AGENT = RewardConfig(preset="agent")
ASO = RewardConfig(preset="ASO")


def attempt(
    r: float | None = None,
    *,
    steps: Sequence[bool | None] = (),
    accepted: bool | None = None,
    u: tuple[float, float] | None = None,
    error: str | None = None,
    recorded: float | None = None,
    verifier: bool = True,
) -> Rollout:
    components: dict[str, float | None] = {} if u is None else {"diversity": u[0], "novelty": u[1]}
    return Rollout(
        id="",
        group_id="g",
        task_id="t",
        replicate=0,
        scores={"numeric": Score(value=r)} if verifier else {},
        trajectory={"steps": [Step(tool="python", success=s) for s in steps]},  # type: ignore[arg-type]
        components=components if recorded is None else components | {RECORDED: recorded},
        accepted=accepted,
        error=error,
    )


def group(*rollouts: Rollout) -> Group:
    numbered = [r.model_copy(update={"id": f"g-{i}", "replicate": i}) for i, r in enumerate(rollouts)]
    return Group(id="g", run_id="R1", task_id="t", rollouts=tuple(numbered))


def rewards(settled: Group) -> list[float | None]:
    return [r.reward for r in settled.rollouts]


ATTEMPT = st.builds(
    attempt,
    st.none() | st.sampled_from([0.0, 0.5, 1.0]),
    steps=st.lists(st.none() | st.booleans(), max_size=3),
    accepted=st.none() | st.booleans(),
    u=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    error=st.none() | st.just("gone"),
    verifier=st.sampled_from([True, True, False]),
)
GROUP = st.lists(ATTEMPT, min_size=1, max_size=6).map(lambda rollouts: group(*rollouts))
REWARD = st.sampled_from([RewardConfig(preset=p) for p in PRESETS]) | st.fixed_dictionaries(
    {"verified": st.floats(0.1, 5), "tools": st.floats(0, 5), "epistemic": st.floats(0, 5)}
).map(lambda weights: RewardConfig(preset="own", weights=weights))


def recombined(settled: Group, weights: Mapping[Component, float]) -> list[float | None]:
    """The rewards, made from the stored parts alone: a second way, with numpy."""
    used = {c: w for c, w in weights.items() if c not in settled.left_out}
    factor = sum(weights.values()) / sum(used.values()) if used else 0.0
    made: list[float | None] = []
    for r in settled.rollouts:
        if r.extrinsic is None:
            made.append(None)
            continue
        values = np.array([r.components[c] for c in used], float)
        made.append(float(values @ np.array(list(used.values())) * factor))
    return made


@given(GROUP, REWARD)
def test_stored_parts_recombine_to_every_reward(made: Group, reward: RewardConfig) -> None:
    settled = settle(made, reward)
    expected = recombined(settled, reward.by_component)
    assert [v is None for v in rewards(settled)] == [v is None for v in expected]
    np.testing.assert_allclose(
        np.array(rewards(settled), float), np.array(expected, float), rtol=1e-9, atol=1e-12
    )
    assert [r.advantage for r in settled.rollouts] == advantages(rewards(settled))


@given(GROUP, REWARD)
def test_settling_again_changes_nothing(made: Group, reward: RewardConfig) -> None:
    once = settle(made, reward)
    assert settle(once, reward) == once


@given(GROUP, st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=6, max_size=6))
def test_the_epistemic_part_never_decides_whether_a_group_teaches(
    made: Group, halves: list[tuple[float, float]]
) -> None:
    curious = [
        r.model_copy(update={"components": {"diversity": d, "novelty": n}})
        for r, (d, n) in zip(made.rollouts, halves, strict=False)
    ]
    plain, other = settle(made, RewardConfig()), settle(group(*curious), ASO)
    assert (plain.status, plain.reason) == (other.status, other.reason)
    assert [r.extrinsic for r in plain.rollouts] == [r.extrinsic for r in other.rollouts]


@given(GROUP, REWARD, st.data())
def test_in_another_order_every_rollout_keeps_its_reward(
    made: Group, reward: RewardConfig, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(made.rollouts))))
    settled = settle(made, reward)
    moved = settle(made.model_copy(update={"rollouts": tuple(made.rollouts[i] for i in order)}), reward)
    assert [r.reward for r in moved.rollouts] == [settled.rollouts[i].reward for i in order]
    assert (moved.status, moved.left_out) == (settled.status, settled.left_out)


@given(GROUP, REWARD)
def test_y23_a_rollout_that_broke_off_is_counted_and_has_no_reward(made: Group, reward: RewardConfig) -> None:
    settled = settle(made, reward)
    assert len(settled.rollouts) == len(made.rollouts)
    for r in settled.rollouts:
        if r.error is not None:
            assert (r.reward, r.extrinsic, r.advantage, r.outcome) == (None, None, None, "error")


def test_the_preset_verified_is_the_verifiers_mean_to_the_last_bit() -> None:
    settled = settle(group(attempt(0.1), attempt(0.7)), RewardConfig())
    assert rewards(settled) == [0.1, 0.7]
    assert [r.extrinsic for r in settled.rollouts] == [0.1, 0.7]


def test_the_preset_aso_is_seven_tenths_outcome_and_three_tenths_novelty() -> None:
    settled = settle(group(attempt(1.0, u=(0.2, 0.6)), attempt(0.0, u=(0.5, 1.0))), ASO)
    assert rewards(settled) == [pytest.approx(0.7 + 0.3 * 0.4), pytest.approx(0.3 * 0.75)]
    assert [r.components["epistemic"] for r in settled.rollouts] == [pytest.approx(0.4), 0.75]


def test_without_the_epistemic_part_of_one_rollout_aso_is_the_outcome_for_all() -> None:
    settled = settle(group(attempt(1.0, u=(0.2, 0.6)), attempt(0.5)), ASO)
    assert rewards(settled) == [1.0, 0.5]
    assert settled.left_out == {"epistemic": "not known for 1 of 2 rollouts"}


def test_a_broken_off_rollout_takes_the_epistemic_part_from_nobody() -> None:
    settled = settle(group(attempt(1.0, u=(0.2, 0.6)), attempt(0.0, u=(0, 0)), attempt(error="gone")), ASO)
    assert settled.left_out == {}


def test_the_preset_agent_weighs_outcome_tools_and_acceptance() -> None:
    settled = settle(
        group(
            attempt(1.0, steps=[True, False], accepted=False), attempt(0.0, steps=[True, True], accepted=True)
        ),
        AGENT,
    )
    assert rewards(settled) == [pytest.approx(0.5 + 0.1), pytest.approx(0.2 + 0.3)]
    assert [r.extrinsic for r in settled.rollouts] == [pytest.approx(v) for v in rewards(settled)]


def test_unknown_acceptance_of_one_drops_it_for_all_and_the_other_weights_make_up_for_it() -> None:
    settled = settle(group(attempt(1.0, steps=[True], accepted=True), attempt(0.0, steps=[True])), AGENT)
    assert rewards(settled) == [pytest.approx(1.0), pytest.approx(0.2 / 0.7)]
    assert settled.left_out == {"accepted": "not known for 1 of 2 rollouts"}


def test_never_calling_a_tool_does_not_win() -> None:
    lazy, failing = attempt(0.0), attempt(1.0, steps=[False, False, True])
    first, second = settle(group(lazy, failing), AGENT).rollouts
    assert (first.advantage or 0) < 0 < (second.advantage or 0)
    equal = settle(group(attempt(1.0), attempt(1.0, steps=[True, False])), AGENT)
    assert (equal.status, equal.left_out["tools"]) == ("uninformative", "not known for 1 of 2 rollouts")


def test_the_papers_agent_reward_needs_no_verifier_and_takes_no_call_for_success() -> None:
    settled = settle(
        group(
            attempt(verifier=False, accepted=False),
            attempt(verifier=False, accepted=True, steps=[True, False]),
        ),
        RewardConfig(preset="agent-paper"),
    )
    assert rewards(settled) == [pytest.approx(0.4), pytest.approx(0.4 * 0.5 + 0.6)]


def test_an_agent_without_a_verifier_is_rewarded_for_the_rest() -> None:
    settled = settle(
        group(attempt(verifier=False, steps=[True]), attempt(verifier=False, steps=[False])), AGENT
    )
    assert rewards(settled) == [1.0, 0.0]
    assert set(settled.left_out) == {"verified", "accepted"}


def test_y25_an_attempt_that_could_not_be_verified_is_not_wrong_and_not_right_by_its_tool_calls() -> None:
    settled = settle(
        group(attempt(None, steps=[True]), attempt(1.0, steps=[True]), attempt(0.0, steps=[True])), AGENT
    )
    assert rewards(settled)[0] is None
    assert settled.rollouts[0].outcome == "unscored"
    assert [r.advantage is None for r in settled.rollouts] == [True, False, False]


def test_y13_a_group_that_no_verifier_could_score_fails_with_its_reason_and_does_not_crash() -> None:
    settled = settle(group(attempt(None), attempt(None)), RewardConfig())
    assert (settled.status, settled.reason) == ("failed", "no rollout could be scored")


def test_y23_one_rollout_that_is_left_is_no_group() -> None:
    settled = settle(group(attempt(1.0), attempt(error="503"), attempt(error="503")), RewardConfig())
    assert (settled.status, settled.reason) == ("uninformative", "too few scored: 1 of 3")
    assert settled.rollouts[0].advantage is None


def test_novelty_alone_is_no_reward() -> None:
    settled = settle(group(*(attempt(verifier=False, u=(n, n)) for n in (0.1, 0.9))), ASO)
    assert rewards(settled) == [None, None]
    assert (settled.status, settled.reason) == ("uninformative", UNGRADED)


def test_a_group_that_nobody_graded_is_no_failure_even_where_one_attempt_broke_off() -> None:
    ungraded = attempt(verifier=False)
    for attempts in ((ungraded, ungraded), (ungraded, attempt(error="503", verifier=False))):
        settled = settle(group(*attempts), RewardConfig())
        assert (settled.status, settled.reason) == ("uninformative", UNGRADED)
    settled = settle(group(attempt(error="503"), attempt(error="503")), RewardConfig())
    assert settled.reason == "all failed: 2 of 2 rollouts broke off"


def test_what_no_verifier_could_score_failed_though_another_one_broke_off() -> None:
    settled = settle(group(attempt(None), attempt(error="503")), RewardConfig())
    assert (settled.status, settled.reason) == ("failed", "no rollout could be scored")


def test_equal_outcomes_that_differ_in_novelty_keep_their_order_but_teach_nothing() -> None:
    settled = settle(group(attempt(1.0, u=(0.9, 0.9)), attempt(1.0, u=(0.1, 0.1))), ASO)
    assert (settled.status, settled.reason) == ("uninformative", "all right")
    assert (settled.rollouts[0].advantage or 0) > 0 > (settled.rollouts[1].advantage or 0)


def test_a_recorded_reward_becomes_the_reward_and_is_kept_beside_the_parts() -> None:
    settled = settle(group(attempt(1.0, recorded=-2.0), attempt(1.0, recorded=7.5)), RewardConfig())
    assert rewards(settled) == [-2.0, 7.5]
    assert [r.extrinsic for r in settled.rollouts] == [-2.0, 7.5]
    assert [r.components[RECORDED] for r in settled.rollouts] == [-2.0, 7.5]
    broken = settle(group(attempt(recorded=1.0, error="gone"), attempt(0.0)), RewardConfig())
    assert rewards(broken) == [None, 0.0]


def test_own_weights_are_taken_as_they_are_given() -> None:
    own = RewardConfig(preset="own", weights={"verified": 2.0, "tools": 1.0})
    settled = settle(group(attempt(1.0, steps=[False]), attempt(0.0, steps=[True])), own)
    assert rewards(settled) == [pytest.approx(2.0), pytest.approx(1.0)]
    assert settled.rollouts[0].extrinsic == pytest.approx(2 / 3)
    dropped = settle(group(attempt(1.0, steps=[False]), attempt(0.5)), own)
    assert rewards(dropped) == [pytest.approx(3.0), pytest.approx(1.5)]


def test_a_reward_too_large_for_a_number_is_refused_by_name() -> None:
    own = RewardConfig(preset="own", weights={"verified": 1e10})
    with pytest.raises(InputError, match="reward of g-0 is too large"):
        settle(group(attempt(recorded=1e305), attempt(0.0)), own)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_component_that_is_weighed_is_stored_with_every_rollout(preset: Preset) -> None:
    reward = RewardConfig(preset=preset)
    settled = settle(group(attempt(1.0), attempt(error="gone")), reward)
    assert all(set(reward.by_component) <= r.components.keys() for r in settled.rollouts)
