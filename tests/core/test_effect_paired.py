"""The paired effect, its interval, its test and the number of tasks: against scipy, statsmodels and enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from core.effect import Paired, Spread, paired, power, sample_size
from core.effect.distributions import MANY, noncentral_upper, student_cdf, student_quantile
from core.effect.interval import DOUBT, interval
from core.effect.signflip import EXACT, FLIPS, sign_flip

GRADED = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.875, 1.0])
DIFFERENCES = st.lists(
    st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.0, 0.125, 0.5, 1.0]), min_size=2, max_size=9
)
ARMS = st.lists(st.tuples(st.none() | GRADED, st.none() | GRADED), max_size=12)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 30, 59, 400])
def test_student_t_is_that_of_scipy(df: int) -> None:
    for t in (-40.0, -2.5, -0.3, 0.0, 0.7, 1.96, 12.0):
        assert student_cdf(t, df) == pytest.approx(stats.t.cdf(t, df), abs=1e-10)
    for p in (0.001, 0.025, 0.3, 0.5, 0.9, 0.975, 0.9999):
        assert student_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-8, abs=1e-8)
    for t, shift in ((1.5, 0.0), (2.0, 1.0), (2.0, 2.8), (1.7, 6.0)):
        assert noncentral_upper(t, df, shift) == pytest.approx(stats.nct.sf(t, df, shift), abs=1e-7)


def test_with_many_degrees_of_freedom_t_is_nearly_normal() -> None:
    assert student_quantile(0.975, MANY) == pytest.approx(stats.t.ppf(0.975, MANY), abs=1e-3)
    assert noncentral_upper(1.96, MANY, 2.8) == pytest.approx(stats.nct.sf(1.96, MANY, 2.8), abs=1e-3)


@given(DIFFERENCES)
def test_the_interval_is_that_of_scipy_widened_by_one_task_more(differences: list[float]) -> None:
    assume(any(differences))
    n = len(differences)
    found = interval(differences)
    error = math.sqrt(stats.sem(differences) ** 2 + (DOUBT / n) ** 2)
    expected = stats.t.interval(0.95, n - 1, np.mean(differences), error)
    assert found == pytest.approx(np.clip(expected, -1, 1), abs=1e-9)


@pytest.mark.parametrize("n", [2, 5, 60])
def test_where_no_task_differs_the_interval_is_what_so_many_tasks_can_rule_out(n: int) -> None:
    share = stats.binomtest(0, n).proportion_ci(0.95, "exact").high
    assert interval([0.0] * n) == pytest.approx((-share, share))
    assert interval([0.0] * n, reach=2.0) == pytest.approx((-2 * share, 2 * share))


def test_equal_gains_on_all_tasks_are_not_certain_either() -> None:
    found = interval([0.25] * 20)
    assert found is not None
    assert found.low < 0.25 < found.high


def test_the_interval_of_two_tasks_does_not_go_beyond_what_a_mean_can_be() -> None:
    assert interval([1.0, 0.0]) == (-1.0, 1.0)
    assert interval([2.0, 0.0], reach=3.0) == (-3.0, 3.0)


def test_one_task_has_no_interval() -> None:
    assert interval([0.5]) is None
    assert interval([]) is None


def test_a_difference_beyond_the_reach_takes_its_place() -> None:
    assert interval([3.0, 0.0, 1.0]) == interval([3.0, 0.0, 1.0], reach=3.0)
    assert interval([3.0, 0.0, 1.0]) != interval([3.0, 0.0, 1.0], reach=4.0)


@given(DIFFERENCES)
def test_p_values_are_those_of_all_sign_flips(differences: list[float]) -> None:
    sums = [math.fsum(s * d for s, d in zip(signs, differences, strict=True))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    observed = math.fsum(differences)
    found = sign_flip(differences)
    assert found.greater == pytest.approx(np.mean([s >= observed - 1e-9 for s in sums]))
    assert found.two_sided == pytest.approx(np.mean([abs(s) >= abs(observed) - 1e-9 for s in sums]))


def test_p_values_are_those_of_scipy() -> None:
    differences = np.array([0.5, 0.25, -0.125, 1.0, 0.25, 0.0, -0.5, 0.75])
    arms = (differences, np.zeros(len(differences)))
    for alternative, found in zip(("two-sided", "greater"), sign_flip(differences.tolist()), strict=True):
        theirs = stats.permutation_test(arms, lambda x, y: np.mean(x - y), permutation_type="samples",
                                        alternative=alternative, n_resamples=np.inf)  # fmt: skip
        assert found == pytest.approx(theirs.pvalue)


def test_drawn_sign_flips_come_close_to_all_of_them() -> None:
    """40 tasks that differ by quarters: their sum has an exact distribution, by convolution."""
    quarters = [1, 2, -1, 3, -2, 1, 1, -4, 2, 1] * 4
    exact = np.ones(1)
    for q in map(abs, quarters):
        exact = np.convolve(exact, [0.5, *[0.0] * (2 * q - 1), 0.5])
    values = np.arange(len(exact)) - sum(map(abs, quarters))
    found = sign_flip([q / 4 for q in quarters])
    observed = sum(quarters)
    for mine, theirs in (
        (found.greater, exact[values >= observed].sum()),
        (found.two_sided, exact[abs(values) >= observed].sum()),
    ):
        assert mine == pytest.approx(theirs, abs=4 * math.sqrt(theirs * (1 - theirs) / FLIPS))


def test_draws_are_seeded_and_never_give_a_p_value_of_0() -> None:
    differences = [0.5] * (EXACT + 46)
    assert sign_flip(differences) == (1 / (FLIPS + 1), 1 / (FLIPS + 1))
    mixed = [0.5, -0.25, 0.25, 0.125] * 6
    assert sign_flip(mixed, seed=3) == sign_flip(mixed, seed=3)
    assert sign_flip(mixed, seed=3) != sign_flip(mixed, seed=4)


def test_tasks_without_a_difference_change_no_p_value() -> None:
    assert sign_flip([0.5, 0.25, *[0.0] * 50]) == sign_flip([0.5, 0.25])
    assert sign_flip([0.0] * 60) == (1.0, 1.0)


@given(ARMS)
def test_an_effect_is_over_the_tasks_that_both_arms_were_scored_on(
    tasks: list[tuple[float | None, float | None]],
) -> None:
    arm, baseline = [a for a, _ in tasks], [b for _, b in tasks]
    differences = [a - b for a, b in tasks if a is not None and b is not None]
    found = paired(arm, baseline)
    assert found.tasks == len(differences)
    assert found.tasks + found.unpaired == len(tasks)
    assert found.wins == sum(d > 0 for d in differences)
    assert found.losses == sum(d < 0 for d in differences)
    assert found.wins + found.ties + found.losses == found.tasks
    if differences:
        assert found.mean == pytest.approx(np.mean(differences))
        assert (found.p_two_sided, found.p_greater) == sign_flip(differences)
    assert (found.low, found.high) == (interval(differences) or (None, None))


@given(ARMS)
def test_turned_round_an_effect_is_its_own_opposite(tasks: list[tuple[float | None, float | None]]) -> None:
    arm, baseline = [a for a, _ in tasks], [b for _, b in tasks]
    there, back = paired(arm, baseline), paired(baseline, arm)
    assert (there.wins, there.losses, there.p_two_sided) == (back.losses, back.wins, back.p_two_sided)
    if there.mean is not None:
        assert there.mean == -(back.mean or 0)
    if there.low is not None and there.high is not None and back.low is not None and back.high is not None:
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


def test_without_a_task_in_both_arms_nothing_is_claimed() -> None:
    assert paired([None, 1.0], [0.5, None]) == Paired(0, None, None, None, None, None, 0, 0, 0, 2)


def test_arms_of_different_tasks_and_rewards_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired([1.0], [1.0, 0.5])
    with pytest.raises(ValueError, match="NaN"):
        paired([float("nan")], [1.0])


@pytest.mark.parametrize("tasks", [2, 5, 20, 60, 400])
@pytest.mark.parametrize("effect", [0.01, 0.05, 0.15])
def test_power_is_that_of_statsmodels(tasks: int, effect: float) -> None:
    spread, theirs = Spread(0.15, 0.35), TTestPower()
    size = effect / math.sqrt(0.15**2 + 2 * 0.35**2 / 4)
    two = theirs.power(size, tasks, 0.05)
    one = theirs.power(size, tasks, 0.10, alternative="larger")
    assert power(effect, tasks, spread) == pytest.approx(two, abs=1e-7)
    assert power(effect, tasks, spread, level=0.10, sides=1) == pytest.approx(one, abs=1e-7)


@pytest.mark.parametrize(("effect", "samples"), [(0.02, 4), (0.05, 1), (0.05, 4), (0.09, 4), (0.5, 2)])
def test_the_number_of_tasks_is_that_of_statsmodels(effect: float, samples: int) -> None:
    spread = Spread(0.15, 0.35)
    theirs = TTestPower().solve_power(effect / spread.of_difference(samples), None, 0.05, 0.8)
    assert sample_size(effect, spread, samples=samples) == max(2, math.ceil(np.max(theirs)))


@pytest.mark.parametrize("sides", [1, 2])
def test_the_number_of_tasks_is_the_smallest_that_has_the_power(sides: int) -> None:
    spread = Spread(0.2, 0.3)
    tasks = sample_size(0.06, spread, sides=sides, level=0.1, wanted=0.9)  # type: ignore[arg-type]
    assert power(0.06, tasks, spread, sides=sides, level=0.1) >= 0.9  # type: ignore[arg-type]
    assert power(0.06, tasks - 1, spread, sides=sides, level=0.1) < 0.9  # type: ignore[arg-type]


def test_a_tiny_effect_needs_a_number_of_tasks_and_no_patience() -> None:
    normal = (0.2 / 1e-5 * (stats.norm.isf(0.025) + stats.norm.isf(0.2))) ** 2
    assert sample_size(1e-5, Spread(0.2)) == pytest.approx(normal, rel=1e-6)


def test_where_nothing_varies_two_tasks_are_enough() -> None:
    assert power(0.1, 2, Spread(0.0)) == 1.0
    assert sample_size(0.1, Spread(0.0)) == 2


def test_questions_without_an_answer_are_refused() -> None:
    for effect, tasks, samples in ((0.0, 9, 4), (-0.1, 9, 4), (float("nan"), 9, 4), (0.1, 1, 4), (0.1, 9, 0)):
        with pytest.raises(ValueError, match="power is about"):
            power(effect, tasks, Spread(0.2), samples=samples)
    for effect, samples, wanted in ((0.0, 4, 0.8), (0.1, 0, 0.8), (0.1, 4, 1.0), (0.1, 4, 0.01)):
        with pytest.raises(ValueError, match="number of tasks needs"):
            sample_size(effect, Spread(0.2), samples=samples, wanted=wanted)


def test_both_parts_of_the_spread_are_found_again() -> None:
    rng = np.random.default_rng(0)
    effects = rng.normal(0.05, 0.2, (4_000, 1))
    arm, baseline = effects + rng.normal(0, 0.3, (4_000, 3)), rng.normal(0, 0.3, (4_000, 5))
    found = Spread.seen(arm.tolist(), baseline.tolist())
    assert found is not None
    assert (found.between, found.within) == pytest.approx((0.2, 0.3), abs=0.01)


def test_the_spread_of_equal_samples_has_no_part_within() -> None:
    found = Spread.seen([[1.0, 1.0], [0.5, 0.5]], [[0.5, 0.5], [0.5, None, 0.5]])
    assert found == Spread(pytest.approx(np.std([0.5, 0.0], ddof=1)), 0.0)


def test_chance_alone_leaves_nothing_between_tasks() -> None:
    found = Spread.seen([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    assert found == Spread(0.0, pytest.approx(math.sqrt(0.5)))


def test_a_spread_needs_two_tasks_with_two_scored_samples_in_each_arm() -> None:
    assert Spread.seen([[1.0, 0.0], [0.0, None]], [[0.0, 1.0], [1.0, 0.0]]) is None
