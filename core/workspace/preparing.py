"""What a person wants to know before an evaluation starts: what files hold, how many tasks it needs, what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from core.effect import Spread, power, sample_size
from core.errors import InputError
from core.evaluation import library_of, read_pack, read_text
from core.proof import ArmLesson
from core.record import Record
from core.store import Store
from core.workspace.estimating import Bounds, estimate
from core.workspace.evaluation_plans import EvaluationPlan, of_arm, run_config_of
from core.workspace.models import Models

BETWEEN, WITHIN = 0.15, 0.4
"""Assumed where nothing was measured: of the true differences of tasks, and of single rewards (0 or 1, right about one
time in five)."""
LEAST_EFFECT, MOST = 0.001, 100.0
"""Of an effect and of a standard deviation, in rewards, which go from 0 to 1 where nobody weighs them otherwise."""
SHOWN_AT = (20, 40, 60, 100, 200)
"""Numbers of tasks whose power is told."""


class Size(Record):
    """How many tasks find an effect, and what other numbers of tasks find."""

    tasks: int
    effect: float
    between: float
    """Standard deviation, over tasks, of the true difference of a task."""
    within: float
    """Standard deviation of one rollout's reward around the mean of its task."""
    samples: int
    level: float
    power: float
    sides: Literal[1, 2]
    power_at: dict[int, float] = Field(default_factory=dict)
    """The chance to find it, by the number of tasks."""


def size(
    effect: float,
    spread: Spread | None = None,
    *,
    samples: int = 4,
    level: float = 0.05,
    wanted: float = 0.8,
    sides: Literal[1, 2] = 2,
    at: int = 0,
) -> Size:
    """Say how many tasks an evaluation needs.

    Args:
        effect: the smallest difference that is to be found.
        spread: how much differences vary, as seen in an evaluation; None = as is assumed.
        samples: rollouts of each task and arm.
        level: chance to see an effect where there is none.
        wanted: chance to find the effect.
        sides: 1 where only a better arm counts.
        at: a further number of tasks whose power is told; fewer than 2 = none.

    Raises:
        InputError: an effect that is not from 0.001 to 100, a standard deviation that is not from 0 to 100, or a wanted
            power that does not lie between the level and 1.
    """
    spread = spread or Spread(BETWEEN, WITHIN)
    _check(effect, spread, level, wanted)
    tasks = sample_size(effect, spread, samples=samples, level=level, sides=sides, wanted=wanted)
    return Size(
        tasks=tasks,
        effect=effect,
        between=spread.between,
        within=spread.within,
        samples=samples,
        level=level,
        power=wanted,
        sides=sides,
        power_at={
            n: power(effect, n, spread, samples=samples, level=level, sides=sides)
            for n in sorted({*SHOWN_AT, *([at] if at > 1 else [])})
        },
    )


def _check(effect: float, spread: Spread, level: float, wanted: float) -> None:
    """Refuse what is no such number; not a number (nan) lies in no range."""
    if not LEAST_EFFECT <= effect <= MOST:
        raise InputError(f"The effect is a difference from {LEAST_EFFECT:g} to {MOST:g}: {effect:g} is none.")
    for name, value in (("between", spread.between), ("within", spread.within)):
        if not 0 <= value <= MOST:
            raise InputError(f"The deviation {name} is a number from 0 to {MOST:g}: {value:g} is none.")
    if not 0 < level < 1:
        raise InputError(f"The level is a chance between 0 and 1, such as 0.05: {level:g} is none.")
    if not level < wanted < 1:
        raise InputError(
            f"The power is a chance between the level ({level:g}) and 1, such as 0.8: {wanted:g} is none."
        )


def lessons_of(kind: Literal["text", "pack"], data: bytes) -> tuple[ArmLesson, ...]:
    """The lessons of a file that is to be an arm: written by hand, or exported from a library.

    Raises:
        InputError, PackError: it cannot be read, or holds no lesson.
    """
    return read_text(data) if kind == "text" else read_pack(data)


def expected(store: Store, models: Models, plan: EvaluationPlan) -> Bounds:
    """What an evaluation may take: calls, tokens and money, at least and at most; asks no model.

    Retries come on top, what is in the cache comes off. An arm with a token prior takes what it takes without.
    """
    config = plan.config
    endpoint = models.get(config.endpoint)
    judge = models.get(config.judge_endpoint) if config.judge_endpoint else None
    tasks = [task for task in map(store.tasks.find, plan.tasks) if task is not None]
    total = Bounds()
    for arm in config.arms:
        if arm.sampled:
            library = library_of(arm, store.versions.library(arm.version or 0))
            run = run_config_of(config, arm, config.seeds[0])
            each = estimate(of_arm(tasks, arm), run, endpoint, library, judge=judge).total
            total += _times(each, len(config.seeds))
    return total


def _times(found: Bounds, count: int) -> Bounds:
    parts: Sequence[Bounds] = [found] * count
    return sum(parts, Bounds())
