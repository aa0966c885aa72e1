"""The objective against enumeration and scipy: ratios, surrogate, and two estimators of KL."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from core.objective import (
    CLIP,
    clipped_surrogate,
    importance_ratio,
    kl_k1,
    kl_k3,
    log_ratio,
    mean_of,
)

FIRST = {"moved": [0.7, 0.2, 0.1], "base": [0.3, 0.3, 0.4]}
AFTER = {  # what follows each first token
    "moved": [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]],
    "base": [[0.6, 0.4], [0.1, 0.9], [0.3, 0.7]],
}


def policy(name: str) -> dict[tuple[int, int], list[float]]:
    """The log-probabilities of the tokens of each reply of two tokens."""
    return {
        (a, b): [math.log(FIRST[name][a]), math.log(AFTER[name][a][b])]
        for a, b in itertools.product(range(3), range(2))
    }


MOVED, BASE = policy("moved"), policy("base")


def chance(logprobs: list[float]) -> float:
    return math.exp(math.fsum(logprobs))


def exact_kl() -> float:
    return float(entropy([chance(MOVED[y]) for y in MOVED], [chance(BASE[y]) for y in MOVED]))


@pytest.mark.parametrize("estimator", [kl_k1, kl_k3])
def test_the_mean_of_an_estimator_over_all_replies_is_the_exact_kl(estimator: object) -> None:
    found = math.fsum(chance(MOVED[y]) * estimator(MOVED[y], BASE[y]) for y in MOVED)  # type: ignore[operator]
    assert found == pytest.approx(exact_kl(), rel=1e-12)


def test_the_estimators_are_those_of_schulman_for_one_token() -> None:
    p, q = math.log(0.7), math.log(0.3)
    r = 0.3 / 0.7
    assert kl_k1([p], [q]) == pytest.approx(-math.log(r))
    assert kl_k3([p], [q]) == pytest.approx((r - 1) - math.log(r))


def test_k3_varies_less_than_k1() -> None:
    chances = np.array([chance(MOVED[y]) for y in MOVED])
    spread = {}
    for estimator in (kl_k1, kl_k3):
        values = np.array([estimator(MOVED[y], BASE[y]) for y in MOVED])
        spread[estimator] = float(chances @ (values - chances @ values) ** 2)
    assert spread[kl_k3] < spread[kl_k1]


@given(st.lists(st.tuples(st.floats(-1e4, 0), st.floats(-1e4, 0)), max_size=20))
def test_k3_is_never_negative_and_never_overflows(pairs: list[tuple[float, float]]) -> None:
    found = kl_k3([m for m, _ in pairs], [b for _, b in pairs])
    assert 0 <= found < math.inf


def test_the_mean_ratio_of_replies_of_the_base_is_one() -> None:
    assert math.fsum(chance(BASE[y]) * importance_ratio(MOVED[y], BASE[y]) for y in BASE) == pytest.approx(
        1.0
    )


def test_a_ratio_is_the_quotient_of_the_chances_and_stays_finite() -> None:
    y = (0, 1)
    assert importance_ratio(MOVED[y], BASE[y]) == pytest.approx(chance(MOVED[y]) / chance(BASE[y]))
    assert importance_ratio([0.0], [-1e6]) < math.inf


def test_other_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        log_ratio([-1.0], [-1.0, -2.0])


def test_the_surrogate_is_that_of_a_hand_enumeration() -> None:
    ratios, advantages = [1.5, 1.5, 0.5, 0.5, 1.1], [1.0, -1.0, 1.0, -1.0, 2.0]
    # min(1.5, 1.2), min(-1.5, -1.2), min(.5, .8), min(-.5, -.8), 2.2
    found = clipped_surrogate(ratios, advantages)
    assert found.value == pytest.approx((1.2 - 1.5 + 0.5 - 0.8 + 2.2) / 5)
    assert found.clipped == pytest.approx(2 / 5)
    assert CLIP == 0.2


def test_the_surrogate_agrees_with_numpy_for_any_clip_range() -> None:
    rng = np.random.default_rng(0)
    for delta in (0.1, 0.2, 0.5):
        ratios, advantages = np.exp(rng.normal(size=50)), rng.normal(size=50)
        expected = np.minimum(ratios * advantages, np.clip(ratios, 1 - delta, 1 + delta) * advantages).mean()
        assert clipped_surrogate(ratios.tolist(), advantages.tolist(), delta).value == pytest.approx(expected)


def test_a_library_that_moves_nothing_has_the_surrogate_zero() -> None:
    assert clipped_surrogate([1.0] * 4, [1.5, -0.5, -0.5, -0.5]).value == pytest.approx(0.0)


def test_no_reply_has_no_surrogate() -> None:
    with pytest.raises(ValueError, match="no reply"):
        clipped_surrogate([], [])


def test_a_mean_comes_with_its_standard_error_or_says_that_it_has_none() -> None:
    values = [0.1, 0.4, 0.2, 0.9]
    found = mean_of(values)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    assert found.se == pytest.approx(np.std(values, ddof=1) / 2)
    assert mean_of([]) is None
    assert mean_of([1.0]) == (1.0, None)
