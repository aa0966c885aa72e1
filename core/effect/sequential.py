"""Looking early without deceiving oneself: a group-sequential plan with alpha spending (`core.effect.spending`).

At each look the p value of the sign-flip test over all tasks so far is held against the boundary of Lan and DeMets
1983.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from core.effect.distributions import NORMAL
from core.effect.paired import Paired
from core.effect.spending import FURTHEST, Paths, spending

Decision = Literal["effect", "go on", "futile", "no effect"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """What one look needs to stop."""

    tasks: int
    z: float
    """Reached: the effect is shown."""
    p: float
    """The same as a p value, two-sided in a two-sided plan: that of the look must be at most this."""
    futile_z: float
    """Not reached: too little hope is left. -inf where the plan never stops for that, and at the last look."""
    spent: float
    """Of the level, up to and with this look."""


class Look(NamedTuple):
    """What one look says."""

    decision: Decision
    """"no effect": not even the last look showed one."""
    p: float | None
    """Corrected for all looks; None while it goes on, 1 where it stopped as futile."""


@dataclass(frozen=True)
class Sequential:
    """A plan of looks, fixed before the first one.

    The chance to see an effect where there is none stays at the level over all looks. Stopping as futile is never
    binding: it only ever makes that chance smaller. An effect that stopped a plan early is too large on average:
    it is measured again on fresh tasks before it is quoted (DESIGN 2.10).

    Raises:
        ValueError: the numbers of tasks do not rise from 2 on, or a level or chance lies out of range.
    """

    tasks: tuple[int, ...]
    """Looked at after so many tasks; the last number is the whole plan."""
    level: float = 0.10
    """In (0, 0.5)."""
    sides: Literal[1, 2] = 1
    """1: whether the arm is better. 2: whether the arms differ; half the level is spent on each side."""
    futility: float = 0.0
    """Stop where the chance to end with an effect, if all goes on as so far, is below this; 0: never.
    Lan, Simon and Halperin 1982, "Stochastically Curtailed Tests in Long-Term Clinical Trials"."""
    hoped_level: float | None = None
    """One-sided level at which that chance is reckoned; the plan's own where it is None."""

    def __post_init__(self) -> None:
        """Refuse a plan that cannot be followed."""
        if not self.tasks or self.tasks[0] < 2 or any(b <= a for a, b in pairwise(self.tasks)):
            raise ValueError("a plan looks at rising numbers of tasks, at least 2")
        levels = [self.level] if self.hoped_level is None else [self.level, self.hoped_level]
        if not all(0 < level < 0.5 for level in levels) or not 0 <= self.futility < 0.5:
            raise ValueError("a level lies between 0 and 0.5, and so does the chance that counts as futile")

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """One a look."""
        return self._plan[0]

    def look(self, at: int, effect: Paired) -> Look:
        """Say what the tasks so far allow to say.

        Args:
            at: which look, from 0.
            effect: over all tasks so far, not only over those since the last look. A few fewer than planned,
                because they were not scored, do no harm.

        Raises:
            ValueError: the plan has no such look, or the effect has no task.
        """
        p = effect.p_greater if self.sides == 1 else effect.p_two_sided
        if p is None or not 0 <= at < len(self.tasks):
            raise ValueError(
                f"the plan has {len(self.tasks)} looks, each at tasks that both arms were scored on"
            )
        z, boundary = _z(p / self.sides), self.boundaries[at]
        if z >= boundary.z:
            return Look("effect", self._corrected(at, z))
        if at == len(self.tasks) - 1:
            return Look("no effect", self._corrected(at, z))
        return Look("futile", 1.0) if z < boundary.futile_z else Look("go on", None)

    def _corrected(self, at: int, z: float) -> float:
        """The chance, without effect, to stop at an earlier look or to have as much at this one.

        Stagewise ordering: Fairbanks and Madsen 1982; Tsiatis, Rosner and Mehta 1984. At most the level
        exactly where the plan sees an effect.
        """
        before = self.boundaries[at - 1].spent if at else 0.0
        now = self._plan[1][at].beyond(self.tasks[at] / self.tasks[-1], z)
        return min(1.0, before + self.sides * now)

    @cached_property
    def _plan(self) -> tuple[tuple[Boundary, ...], tuple[Paths, ...]]:
        """Boundaries, and the paths that reach each look without having crossed one."""
        side = self.level / self.sides
        last = NORMAL.inv_cdf(1 - (side if self.hoped_level is None else self.hoped_level))
        boundaries: list[Boundary] = []
        reached, spent = [Paths.all()], 0.0
        for tasks in self.tasks:
            fraction = tasks / self.tasks[-1]
            z = reached[-1].boundary(fraction, spending(side, fraction) - spent)
            spent = spending(side, fraction)
            p, all_spent = self.sides * NORMAL.cdf(-z), self.sides * spent
            boundaries.append(Boundary(tasks, z, p, self._futile(fraction, last), all_spent))
            reached.append(reached[-1].below(fraction, z))
        return tuple(boundaries), tuple(reached[:-1])

    def _futile(self, fraction: float, last: float) -> float:
        """The z at which the chance to reach `last` at the end, drifting on as so far, is `futility`."""
        if not self.futility or fraction == 1:
            return -math.inf
        return math.sqrt(fraction) * (last - math.sqrt(1 - fraction) * NORMAL.inv_cdf(1 - self.futility))


def _z(p: float) -> float:
    if p <= 0 or p >= 1:
        return FURTHEST if p <= 0 else -FURTHEST
    return -NORMAL.inv_cdf(p)
