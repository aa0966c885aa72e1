"""Looks of the sequential test at one pair: what is planned before the first task, and what each look says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.effect import Sequential, paired
from core.proof import Look

METHOD = (
    "Looks: alpha spending of Lan and DeMets (1983) with the O'Brien-Fleming-like function, on the sign-flip p of all "
    "tasks so far."
)


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
    for at, tasks in enumerate(plan):
        if tasks > done:
            break
        effect = paired([arm.get(t) for t in counted[:tasks]], [baseline.get(t) for t in counted[:tasks]])
        if effect.p_two_sided is None:
            continue
        crossed = sequence.look(at, effect).decision == "effect"
        last = tasks == plan[-1]
        threshold = sequence.boundaries[at].p
        found.append(
            Look(tasks=tasks, p=effect.p_two_sided, threshold=threshold, stopped=crossed and not last)
        )
        if crossed and not last:
            break
    return found
