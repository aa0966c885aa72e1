"""Pass rates, corrections, the gate and votes: against enumeration and statsmodels."""

from __future__ import annotations

import doctest
import importlib
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from core import effect
from core.effect import (
    GATE_LEVEL,
    benjamini_hochberg,
    best_of,
    gate,
    holm,
    majority,
    mean_at_k,
    pass_at_k,
    pass_hat_k,
    successes,
)

P_VALUES = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), min_size=1, max_size=12)
REWARDS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=7)
MODULES = ("correction", "distributions", "interval", "paired", "sampling", "signflip")


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_what_the_docstrings_show_is_so() -> None:
    for name in MODULES:
        found = doctest.testmod(importlib.import_module(f"core.effect.{name}"), optionflags=doctest.ELLIPSIS)
        assert found.failed == 0, name
    assert all(hasattr(effect, name) for name in effect.__all__)


@pytest.mark.parametrize(("n", "c"), [(n, c) for n in range(1, 8) for c in range(n + 1)])
def test_pass_rates_are_those_of_all_choices_of_k_samples(n: int, c: int) -> None:
    passed = [True] * c + [False] * (n - c)
    for k in range(1, n + 1):
        choices = list(combinations(passed, k))
        assert pass_at_k(n, c, k) == pytest.approx(mean([any(chosen) for chosen in choices]), abs=1e-12)
        assert pass_hat_k(n, c, k) == pytest.approx(mean([all(chosen) for chosen in choices]), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 5), (4, 2, 0), (4, 5, 1), (4, -1, 1), (0, 0, 1)])
def test_a_pass_rate_is_not_told_from_fewer_samples(n: int, c: int, k: int) -> None:
    for rate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="samples"):
            rate(n, c, k)


def test_many_samples_do_not_overflow() -> None:
    assert pass_at_k(2_000, 3, 700) == pytest.approx(1 - (1300 * 1299 * 1298) / (2000 * 1999 * 1998))


def test_an_unscored_sample_neither_passed_nor_failed() -> None:
    assert successes([1.0, None, 0.5, 0.9999999999]) == (3, 2)
    assert successes([1.0, None, 0.5], threshold=0.5) == (2, 2)
    assert mean_at_k([1.0, None, 0.5]) == 0.75
    assert mean_at_k([None, None]) is None
    assert mean_at_k([]) is None


@settings(max_examples=20)  # statsmodels takes its time over Holm
@given(P_VALUES)
def test_corrected_p_values_are_those_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(p_values) == pytest.approx(
        multipletests(p_values, method="fdr_bh")[1], abs=1e-12
    )


def test_no_p_value_needs_no_correction_and_what_is_none_is_refused() -> None:
    assert holm([]) == benjamini_hochberg([]) == []
    for wrong in (-0.1, 1.1, float("nan")):
        for correct in (holm, benjamini_hochberg):
            with pytest.raises(ValueError, match="no p value"):
                correct([0.5, wrong])


@given(P_VALUES)
def test_the_gate_lets_through_what_statsmodels_rejects(p_values: list[float]) -> None:
    rejected = multipletests(p_values, alpha=GATE_LEVEL, method="fdr_bh")[1] <= GATE_LEVEL + 1e-12
    passes = gate({f"P-{i}": p for i, p in enumerate(p_values)})
    assert list(passes) == [f"P-{i}" for i in range(len(p_values))]
    assert list(passes.values()) == rejected.tolist()


def test_a_p_value_exactly_at_its_limit_passes() -> None:
    assert gate({"P-1": 0.0, "P-2": 0.0, "P-3": 0.05, "P-4": 1.0, "P-5": 1.0, "P-6": 1.0})["P-3"]


def test_lessons_that_were_tried_too_make_the_gate_narrower() -> None:
    assert gate({"P-1": 0.08}) == {"P-1": True}
    assert gate({"P-1": 0.08, "P-2": 0.9}) == {"P-1": False, "P-2": False}
    assert gate({"P-1": 0.08, "P-2": 0.09}) == {"P-1": True, "P-2": True}
    assert gate({}) == {}


def test_the_majority_is_counted_over_normalised_answers() -> None:
    vote = majority(["Paris.", "Rome", "**paris**", None, "  "], [1.0, 0.0, 0.5, 1.0, 1.0])
    assert (vote.answer, vote.voters, vote.tied, vote.of) == ("Paris.", (0, 2), (), 3)
    assert vote.reward == 0.75  # the mean of its voters: any of them may be the one that is sent


def test_a_tie_names_the_answers_and_is_worth_their_mean() -> None:
    vote = majority(["Rome", "Paris", "rome!", "paris", "Oslo"], [0.0, 1.0, 0.0, 0.5, 1.0])
    assert (vote.answer, vote.tied) == ("Rome", ("Paris",))
    assert vote.reward == 0.375


def test_a_vote_without_answers_or_rewards_is_not_worth_0() -> None:
    assert majority([None, "", "..."], [1.0, 1.0, 1.0]).answer is None
    assert majority([None, "", "..."], [1.0, 1.0, 1.0]).reward is None
    assert majority(["a", "a", "b"], [None, None, 1.0]).reward is None
    assert majority(["a", "a", "b"]).reward is None
    assert majority(["a", "a", "b"], [None, 0.5, 1.0]).reward == 0.5


def test_a_tied_answer_that_nobody_scored_is_left_out_of_the_mean() -> None:
    assert majority(["a", "b"], [None, 0.5]).reward == 0.5


def test_the_vote_can_be_counted_in_another_form() -> None:
    assert majority(["4", "4.0", "5"], form=lambda a: str(float(a))).voters == (0, 1)


@given(REWARDS)
def test_the_best_of_k_is_the_mean_over_all_choices_of_k(rewards: list[float]) -> None:
    for k in range(1, len(rewards) + 1):
        choices = [max(chosen) for chosen in combinations(rewards, k)]
        assert best_of(rewards, k) == pytest.approx(mean(choices), abs=1e-12)
        passed = [float(r == 1) for r in rewards]
        assert best_of(passed, k) == pytest.approx(pass_at_k(len(passed), int(sum(passed)), k), abs=1e-12)
    assert best_of(rewards) == max(rewards)


def test_only_scored_samples_can_be_best() -> None:
    assert best_of([None, 0.5, 0.25]) == 0.5
    assert best_of([None, None]) is None
    for k in (0, 3):
        with pytest.raises(ValueError, match="scored samples"):
            best_of([None, 0.5, 0.25], k)
