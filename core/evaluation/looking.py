"""Looks of the sequential test at one pair: what is planned before the first task, and what each look says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.effect import GATE_LEVEL, Paired, Sequential, paired
from core.effect.distributions import NORMAL
from core.proof import Look, StopWhen

METHODS: dict[StopWhen, str] = {
    "decided": "Looks: alpha spending of Lan and DeMets (1983) with the O'Brien-Fleming-like function, on the sign-"
    "flip p of all tasks so far; p over all looks by stagewise ordering (Fairbanks and Madsen 1982).",
    "hopeless": "Looks: an arm that will hardly be shown to be better is stopped after half of its tasks or later "
    "(Lan, Simon and Halperin 1982); no other.",
}

HOPELESS = 0.01
"""Chance to be let through, below which an arm is stopped."""


def planned(order: Sequence[str], counted: Sequence[str], every: int) -> list[int]:
    """How many of the tasks that count for a pair are there after each block of tasks.

    Args:
        order: all tasks of the evaluation, in the order in which they are sampled.
        counted: those that count for the pair.
        every: tasks of a block.
    """
    own, found = set(counted), list[int]()
    for end in range(every, len(order) + every, every):
        so_far = sum(task in own for task in order[:end])
        if so_far >= 2 and (not found or so_far > found[-1]):
            found.append(so_far)
    return found


def looks(
    counted: Sequence[str],
    plan: Sequence[int],
    arm: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
    level: float,
    done: int,
) -> list[Look]:
    """What the looks say that can be taken by now; the last one may be the one that stops the pair.

    Args:
        counted: the tasks of the pair, in the order in which they are sampled.
        plan: tasks at each look (`planned`).
        arm: mean reward of each task; None where it could not be scored.
        baseline: likewise.
        level: two-sided, over all looks.
        done: how many of the counted tasks are finished in both arms, from the first on.
    """
    if not plan:
        return []
    sequence = Sequential(tasks=tuple(plan), level=level, sides=2)
    found: list[Look] = []
    for at, effect in _due(counted, plan, arm, baseline, done):
        if effect.p_two_sided is None:
            continue
        said, last = sequence.look(at, effect), plan[at] == plan[-1]
        stopped = said.decision == "effect" and not last
        found.append(
            Look(
                tasks=plan[at],
                p=effect.p_two_sided,
                threshold=sequence.boundaries[at].p,
                stopped=stopped,
                p_over_looks=said.p,
            )
        )
        if stopped:
            break
    return found


def hopeless_looks(
    counted: Sequence[str],
    plan: Sequence[int],
    arm: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
    done: int,
) -> list[Look]:
    """Looks that stop a pair only where the gate will hardly let the arm through; see `looks`.

    The gate's own test is one-sided, of all tasks, at `GATE_LEVEL` at best: where the chance to reach even that,
    drifting on as so far, is below `HOPELESS` (Lan, Simon and Halperin 1982), the arm is stopped, after half of its
    tasks at the earliest: fewer say too little. It never passes, so that the share of lessons that pass without
    helping only gets smaller; of lessons that would pass in 70 % of trials about 1 % are lost.
    """
    if not plan:
        return []
    sequence = Sequential(tasks=tuple(plan), level=GATE_LEVEL, sides=1, futility=HOPELESS)
    found: list[Look] = []
    for at, effect in _due(counted, plan, arm, baseline, done, since=plan[-1] / 2):
        if effect.p_greater is None:
            continue
        threshold = NORMAL.cdf(-sequence.boundaries[at].futile_z)
        stopped = effect.p_greater > threshold
        found.append(Look(tasks=plan[at], p=effect.p_greater, threshold=threshold, stopped=stopped))
        if stopped:
            break
    return found


def _due(
    counted: Sequence[str],
    plan: Sequence[int],
    arm: Mapping[str, float | None],
    baseline: Mapping[str, float | None],
    done: int,
    since: float = 0,
) -> Iterator[tuple[int, Paired]]:
    """Which look, and the effect over all tasks so far, of each that can be taken by now and has so many tasks."""
    for at, tasks in enumerate(plan):
        if tasks > done:
            return
        if tasks < since:
            continue
        yield at, paired([arm.get(t) for t in counted[:tasks]], [baseline.get(t) for t in counted[:tasks]])
