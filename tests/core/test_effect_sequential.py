"""Plans with looks: against the multivariate normal of scipy; and what holds on simulated tasks, in short."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from core.effect import Paired, Sequential, paired
from core.effect.spending import spending
from tests.soak_effect import POPULATIONS, above, coverage, follow, gated

PLAN = Sequential((20, 40, 60), 0.10)


def shown(p: float, tasks: int = 20) -> Paired:
    """An effect with this one-sided p value."""
    return Paired(tasks, 0.1, 0.0, 0.2, min(1.0, 2 * p), p, 1, 0, 0, 0)


def none_reached(fractions: list[float], z: list[float]) -> float:
    """The chance that no look reaches its z without an effect."""
    shared = [[math.sqrt(min(s, t) / max(s, t)) for s in fractions] for t in fractions]
    cdf = stats.multivariate_normal.cdf
    return float(cdf(z, cov=shared, abseps=1e-6, maxpts=200_000, rng=np.random.default_rng(0)))


def test_five_equal_looks_have_the_known_boundaries() -> None:
    z = [b.z for b in Sequential((12, 24, 36, 48, 60), 0.05, 2).boundaries]
    assert z == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)


def test_one_look_is_the_plain_test() -> None:
    (one,) = Sequential((60,), 0.10).boundaries
    assert (one.z, one.p, one.spent) == pytest.approx((stats.norm.isf(0.10), 0.10, 0.10), abs=1e-9)
    (two,) = Sequential((60,), 0.05, 2).boundaries
    assert (two.z, two.p) == pytest.approx((stats.norm.isf(0.025), 0.05), abs=1e-9)


@pytest.mark.parametrize("tasks", [(20, 40, 60), (5, 30, 40, 60), (10, 20, 30, 40, 50, 60)])
@pytest.mark.parametrize("level", [0.01, 0.10, 0.3])
def test_each_look_spends_what_it_may_by_the_multivariate_normal(
    tasks: tuple[int, ...], level: float
) -> None:
    plan = Sequential(tasks, level)
    fractions = [n / tasks[-1] for n in tasks]
    for looks in range(2, len(tasks) + 1):
        spent = 1 - none_reached(fractions[:looks], [b.z for b in plan.boundaries[:looks]])
        assert spent == pytest.approx(plan.boundaries[looks - 1].spent, abs=2e-5)
        assert plan.boundaries[looks - 1].spent == pytest.approx(spending(level, fractions[looks - 1]))
    assert plan.boundaries[-1].spent == pytest.approx(level)


def test_of_a_two_sided_plan_each_side_spends_half() -> None:
    one, two = Sequential((20, 40, 60), 0.025).boundaries, Sequential((20, 40, 60), 0.05, 2).boundaries
    assert [b.z for b in one] == [b.z for b in two]
    assert [2 * b.p for b in one] == [b.p for b in two]
    assert [2 * b.spent for b in one] == [b.spent for b in two]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("sides", [1, 2])
def test_an_effect_is_what_reaches_the_boundary_and_its_corrected_p_value_is_at_most_the_level(
    at: int, sides: int
) -> None:
    plan = Sequential((20, 40, 60), 0.10, sides)  # type: ignore[arg-type]
    boundary = plan.boundaries[at]
    reached, missed = (
        plan.look(at, shown(boundary.p / sides * 0.999)),
        plan.look(at, shown(boundary.p / sides * 1.001)),
    )
    assert reached.decision == "effect"
    assert reached.p == pytest.approx(boundary.spent, rel=1e-2)
    assert reached.p is not None
    assert reached.p < boundary.spent
    if at < 2:
        assert missed == ("go on", None)
    else:
        assert missed.decision == "no effect"
        assert missed.p is not None
        assert plan.level < missed.p < plan.level * 1.01


def test_a_corrected_p_value_is_the_chance_by_the_multivariate_normal() -> None:
    first, second = PLAN.boundaries[0].z, 2.5
    found = PLAN.look(1, shown(float(stats.norm.sf(second)))).p
    stopped_before = stats.norm.sf(first)
    assert found == pytest.approx(1 - none_reached([1 / 3, 2 / 3], [first, second]), abs=1e-6)
    assert found is not None
    assert found > stopped_before


def test_p_values_at_either_end_are_decided_too() -> None:
    assert PLAN.look(2, shown(1.0)).decision == "no effect"
    assert PLAN.look(2, shown(1.0)).p == pytest.approx(1.0)
    assert PLAN.look(0, shown(0.0)).decision == "effect"
    assert PLAN.look(0, paired([0.5] * 20, [0.5] * 20)) == ("go on", None)


@pytest.mark.parametrize("at", [0, 1])
def test_futile_is_where_the_chance_to_end_with_an_effect_is_as_small_as_said(at: int) -> None:
    plan = Sequential((20, 40, 60), 0.01, futility=0.1, hoped_level=0.10)
    fraction, z = plan.tasks[at] / 60, plan.boundaries[at].futile_z
    b, drift = z * math.sqrt(fraction), z / math.sqrt(fraction)
    chance = stats.norm.sf((stats.norm.isf(0.10) - b - drift * (1 - fraction)) / math.sqrt(1 - fraction))
    assert chance == pytest.approx(0.1)
    assert plan.look(at, shown(float(stats.norm.sf(z - 0.01)))) == ("futile", 1.0)
    assert plan.look(at, shown(float(stats.norm.sf(z + 0.01)))).decision == "go on"


def test_futility_never_binds() -> None:
    """The boundaries are those of the plan without it, and the last look never stops as futile."""
    with_it = Sequential((20, 40, 60), 0.10, futility=0.1)
    assert [b.z for b in with_it.boundaries] == [b.z for b in PLAN.boundaries]
    assert with_it.boundaries[-1].futile_z == -math.inf
    assert {b.futile_z for b in PLAN.boundaries} == {-math.inf}


def test_a_plan_that_cannot_be_followed_is_refused() -> None:
    for tasks in ((), (1, 2), (20, 20), (40, 20)):
        with pytest.raises(ValueError, match="rising"):
            Sequential(tasks)
    for more in ({"level": 0.0}, {"level": 0.5}, {"hoped_level": 0.0}, {"futility": 0.5}, {"futility": -0.1}):
        with pytest.raises(ValueError, match="between"):
            Sequential((20, 40), **more)  # type: ignore[arg-type]
    for at in (-1, 3):
        with pytest.raises(ValueError, match="3 looks"):
            PLAN.look(at, shown(0.5))
    with pytest.raises(ValueError, match="looks"):
        PLAN.look(0, paired([None], [0.5]))


@pytest.mark.parametrize("population", POPULATIONS, ids=lambda p: p.name)
def test_intervals_hold_the_true_effect_about_19_times_of_20(population: object) -> None:
    """Wide bounds, 200 simulations each; `make soak` has the narrow ones."""
    for effect in (0.0, 0.02, 0.1):
        found = coverage(population, effect, simulations=200, tasks=60, seed=7)  # type: ignore[arg-type]
        assert 0.90 <= found.share <= (1.0 if found.population.equal_seeds else 0.995)
        assert found.empty == 0


def test_a_plan_with_looks_sees_effects_where_there_are_some() -> None:
    plans = [PLAN, Sequential((20, 40, 60), 0.10, futility=0.1)]
    (null, null_futile) = follow(plans, POPULATIONS[0], 0.0, simulations=200, seed=7)
    assert null.found <= above(0.10, 200)
    assert null_futile.found <= null.found
    assert null_futile.tasks < 40 < null.tasks
    (real, _) = follow(plans, POPULATIONS[0], 0.09, simulations=200, seed=7)
    assert real.found > 0.75
    assert real.tasks < 55


def test_the_gate_lets_lessons_through_that_help() -> None:
    found = gated(POPULATIONS[0], (0.0, 0.0, -0.09, 0.09), rounds=60, seed=7, looks=(20, 40), futility=0.05)
    assert found.helpful > 0.4
    assert found.harmful == 0
    assert found.null < 0.15
