"""Intervals, plans with looks and the gate, on simulated tasks whose effect is known: `python -m tests.soak_effect`.

A task has a chance of the right content and one of the right form; a reward is 0, 1/2 (content) or 1 (form too), and an
arm's result on a task the mean of four. What must hold is told in docs/soak.md, with what was seen.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from core.effect import GATE_LEVEL, Paired, Sequential, gate, paired
from core.effect.interval import interval

REWARDS = np.array([0.0, 0.5, 1.0])
TASKS = 20_000
"""In a population: its mean effect is exact."""
SAMPLES = 4
EFFECTS = (0.0, 0.02, 0.1)

Array = Any  # of numpy


@dataclass(frozen=True)
class Population:
    """Tasks that evaluations are drawn from."""

    name: str
    content: tuple[float, float]
    """Beta distribution, over tasks, of the chance of the right content."""
    graded: bool = True
    """Whether the right content can come in the wrong form."""
    reached: float = 1.0
    """Share of the tasks that the lesson does anything to."""
    harmed: float = 0.0
    """Share of the tasks on which the lesson turns three of ten answers wrong; the others make up for it."""
    equal_seeds: bool = False
    """Both arms draw the same random numbers: most tasks then do not differ at all."""

    def chances(self, effect: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """The chance of each reward without and with the lesson, whose mean effect is exactly `effect`.

        Shape [TASKS, 3] each. A part of the answers becomes wholly right (of a harmful lesson: wrong). The same
        state of `rng` gives the same tasks, whatever the effect.
        """
        right = rng.beta(*self.content, TASKS)
        form = rng.beta(1, 1, TASKS) if self.graded else np.ones(TASKS)
        baseline = np.stack([1 - right, right * (1 - form), right * form], axis=1)
        kinds = rng.random(TASKS)
        harmed, helped = kinds < self.harmed, (kinds >= self.harmed) & (kinds < self.harmed + self.reached)
        mean = baseline @ REWARDS
        gain = effect + (0.3 * harmed * mean).mean()
        part = gain / (helped * (1 - mean)).mean() if gain >= 0 else -gain / (helped * mean).mean()
        if part > 1:
            raise ValueError(f"the population {self.name!r} has no room for an effect of {effect}")
        moved, to = part * helped[:, None], [0, 0, 1] if gain >= 0 else [1, 0, 0]
        lost = 0.3 * harmed[:, None]
        return baseline, baseline * (1 - moved - lost) + moved * to + lost * [1, 0, 0]


POPULATIONS = (
    Population("even", (1, 1)),
    Population("all or nothing", (0.15, 0.15)),
    Population("hard", (0.3, 5)),
    Population("easy", (8, 0.4)),
    Population("right or wrong", (0.5, 0.5), graded=False),
    Population("few reached", (0.5, 0.5), reached=0.25),
    Population("some harmed", (1, 1), harmed=0.5),
    Population("equal seeds", (0.5, 0.5), equal_seeds=True),
)


class Results(NamedTuple):
    """Mean rewards of simulated evaluations; shape [simulations, tasks] each."""

    arm: Array
    baseline: Array


def evaluations(
    population: Population, effect: float, rng: np.random.Generator, *, simulations: int, tasks: int
) -> Results:
    """Evaluate one arm against a baseline, again and again, on tasks drawn anew."""
    without, with_it = population.chances(effect, rng)
    drawn = rng.integers(0, TASKS, (simulations, tasks))
    luck = rng.random((simulations, tasks, SAMPLES))
    again = luck if population.equal_seeds else rng.random(luck.shape)
    return Results(_means(with_it[drawn], again), _means(without[drawn], luck))


def _means(chances: Array, luck: Array) -> Array:
    limits = np.cumsum(chances, axis=-1)[..., None, :2]
    return REWARDS[(luck[..., None] > limits).sum(axis=-1)].mean(axis=-1)


class Covered(NamedTuple):
    """How often the interval held the true effect."""

    population: Population
    effect: float
    differ: float
    """Share of the tasks whose difference is not 0."""
    share: float
    width: float
    empty: int
    """Intervals of no width: must be 0."""

    @property
    def wrong(self) -> bool:
        least, most = 0.93, 1.0 if self.population.equal_seeds else 0.97
        return not least <= self.share <= most or self.empty > 0


def coverage(population: Population, effect: float, *, simulations: int, tasks: int, seed: int) -> Covered:
    """Count the intervals that hold the true effect."""
    results = evaluations(
        population, effect, np.random.default_rng(seed), simulations=simulations, tasks=tasks
    )
    differences = results.arm - results.baseline
    found = [interval(d.tolist()) for d in differences]
    ends = np.array([f for f in found if f is not None])
    held = (ends[:, 0] <= effect + 1e-12) & (effect - 1e-12 <= ends[:, 1])
    widths = ends[:, 1] - ends[:, 0]
    return Covered(
        population, effect, float((differences != 0).mean()), float(held.mean()), float(widths.mean()),
        int((widths <= 0).sum()),
    )  # fmt: skip


class Followed(NamedTuple):
    """What came of a plan with looks."""

    population: Population
    effect: float
    once: float
    """Share that the test finds with one look at the end."""
    found: float
    """Share that the plan finds."""
    futile: float
    tasks: float
    """Mean number of tasks looked at."""


def follow(
    plans: Sequence[Sequential], population: Population, effect: float, *, simulations: int, seed: int
) -> list[Followed]:
    """Follow plans with the same looks through the same simulated evaluations."""
    tasks = plans[0].tasks
    rng = np.random.default_rng(seed)
    results = evaluations(population, effect, rng, simulations=simulations, tasks=tasks[-1])
    once: list[bool] = []
    found: list[list[tuple[str, int]]] = [[] for _ in plans]
    for arm, baseline in zip(results.arm.tolist(), results.baseline.tolist(), strict=True):
        seen = [paired(arm[:n], baseline[:n]) for n in tasks]
        p = seen[-1].p_greater if plans[0].sides == 1 else seen[-1].p_two_sided
        once.append(p is not None and p <= plans[0].level)
        for stops, plan in zip(found, plans, strict=True):
            stops.append(_followed(plan, seen))
    return [
        Followed(
            population, effect, float(np.mean(once)), float(np.mean([d == "effect" for d, _ in stops])),
            float(np.mean([d == "futile" for d, _ in stops])), float(np.mean([n for _, n in stops])),
        ) for stops in found
    ]  # fmt: skip


def _followed(plan: Sequential, seen: Sequence[Paired]) -> tuple[str, int]:
    """The decision that a plan comes to, and after how many tasks."""
    for at, effect in enumerate(seen):
        if (look := plan.look(at, effect)).decision != "go on":
            return look.decision, plan.tasks[at]
    raise AssertionError("the last look decides")


class Gated(NamedTuple):
    """What the gate let through, as shares of the lessons of each kind."""

    null: float
    helpful: float
    harmful: float
    false: float
    """Mean share of null and harmful lessons among those that pass: at most the level."""
    tasks: float
    """Mean number of tasks that a lesson was tried on."""


def gated(
    population: Population,
    effects: Sequence[float],
    *,
    rounds: int,
    seed: int,
    looks: tuple[int, ...],
    futility: float = 0.0,
) -> Gated:
    """Try lessons together, against one baseline on the same tasks, and count which pass.

    With looks before the end a lesson stops early where it would pass whatever the others show: its plan spends the
    level divided by the number of lessons.
    """
    rng = np.random.default_rng([seed, 1])
    chances = [population.chances(e, np.random.default_rng(seed)) for e in effects]
    level = GATE_LEVEL / len(effects)
    plan = Sequential(looks, level, futility=futility, hoped_level=GATE_LEVEL)
    passed, looked = np.zeros((rounds, len(effects)), dtype=bool), []
    for one in range(rounds):
        drawn = rng.integers(0, TASKS, looks[-1])
        baseline = _means(chances[0][0][drawn], rng.random((looks[-1], SAMPLES))).tolist()
        p_values = {}
        for lesson, (_, with_it) in enumerate(chances):
            arm = _means(with_it[drawn], rng.random((looks[-1], SAMPLES))).tolist()
            for at, tasks in enumerate(looks):
                if (p := plan.look(at, paired(arm[:tasks], baseline[:tasks])).p) is not None:
                    p_values[lesson] = p
                    looked.append(tasks)
                    break
        for lesson, passes in gate(p_values).items():
            passed[one, lesson] = passes
    kinds = np.array(effects)
    false = passed[:, kinds <= 0].sum(axis=1)

    def share(which: Array) -> float:
        return float(passed[:, which].mean()) if which.any() else 0.0

    return Gated(
        share(kinds == 0), share(kinds > 0), share(kinds < 0),
        float((false / np.maximum(passed.sum(axis=1), 1)).mean()), float(np.mean(looked)),
    )  # fmt: skip


PLANS = {
    "one-sided .10": [Sequential((20, 40, 60), GATE_LEVEL, futility=f) for f in (0.0, 0.05, 0.1)],
    "two-sided .05": [Sequential((10, 20, 30, 40, 50, 60), 0.05, 2)],
}
TRIED = {
    "6 null, 2 harmful, 2 helpful": (0.0,) * 6 + (-0.09,) * 2 + (0.09,) * 2,
    "10 null": (0.0,) * 10,
    "1 null": (0.0,),
    "1 helpful": (0.09,),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2_000)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began, wrong = time.monotonic(), 0
    for line, broken in _lines(options.simulations, options.tasks, options.seed):
        wrong += broken
        sys.stdout.write(f"| {line} |{' WRONG' if broken else ''}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{wrong} wrong, took {time.monotonic() - began:.0f} s\n")
    return 1 if wrong else 0


def _lines(simulations: int, tasks: int, seed: int) -> Iterator[tuple[str, bool]]:
    """Rows of the tables in docs/soak.md, and whether one broke what must hold."""
    for number, population in enumerate(POPULATIONS):
        for effect in EFFECTS:
            own = seed + 100 * number
            c = coverage(population, effect, simulations=simulations, tasks=tasks, seed=own)
            yield f"{population.name} | {effect} | {c.differ:.2f} | {c.share:.3f} | {c.width:.3f}", c.wrong
    for name, plans in PLANS.items():
        for number, population in enumerate(POPULATIONS):
            for effect in (0.0, 0.09):
                own = seed + 100 * number
                for plan, f in zip(
                    plans, follow(plans, population, effect, simulations=simulations, seed=own), strict=True
                ):
                    shares = f"{f.once:.3f} | {f.found:.3f} | {f.futile:.3f} | {f.tasks:.0f}"
                    row = f"{name} | {plan.futility:g} | {population.name} | {effect} | {shares}"
                    yield row, not effect and f.found > above(plan.level, simulations)
    for looks, futility in (((40,), 0.0), ((60,), 0.0), ((20, 40, 60), 0.05)):
        for population in (POPULATIONS[0], POPULATIONS[6]):
            for name, effects in TRIED.items():
                rounds = simulations if len(effects) == 1 else simulations // 4
                g = gated(population, effects, rounds=rounds, seed=seed, looks=looks, futility=futility)
                shares = f"{g.null:.3f} | {g.harmful:.3f} | {g.helpful:.3f} | {g.false:.3f} | {g.tasks:.0f}"
                row = f"{', '.join(map(str, looks))} | {population.name} | {name} | {shares}"
                yield row, g.false > above(GATE_LEVEL, rounds)


def above(level: float, simulations: int) -> float:
    """What a share that is at the level in truth stays below in 98 of 100 soaks: two standard errors more."""
    return level + 2 * math.sqrt(level * (1 - level) / simulations)


if __name__ == "__main__":
    sys.exit(main())
