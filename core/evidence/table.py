"""Table: the winners and losers of a batch as rows, their features as boolean columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.evidence.features import Feature, features_of, masked_words
from core.rollout import Group, Rollout, Task

Bools = NDArray[np.bool_]

MIN_BEST = 5
"""As few as this many rollouts say what the best have in common."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are rollouts with an advantage other than 0, in groups that have both winners and losers."""

    rollouts: tuple[Rollout, ...]
    tasks: Mapping[str, Task]
    """By id: the tasks of the rollouts."""
    strata: NDArray[np.intp]
    """Number of the group of each row, 0 to groups - 1, not falling; shape [rows]."""
    wins: Bools
    """A > 0; shape [rows]."""
    columns: tuple[Feature, ...]
    holds: Bools
    """Whether the feature of a column holds for the rollout of a row; shape [rows, columns]."""

    @property
    def groups(self) -> int:
        return int(self.strata[-1]) + 1 if len(self.strata) else 0

    @property
    def group_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(r.group_id for r in self.rollouts))

    @property
    def best(self) -> Bools:
        """The winners with the highest rewards: at least `MIN_BEST` where there are so many, ties included."""
        rewards = np.array([-np.inf if r.reward is None else r.reward for r in self.rollouts])
        won = np.sort(rewards[self.wins])[::-1]
        return self.wins & (rewards >= won[min(MIN_BEST, len(won)) - 1] - 1e-9) if len(won) else self.wins

    def column(self, name: str) -> Bools:
        """One feature of every row; nowhere true where no row has it."""
        for i, feature in enumerate(self.columns):
            if feature.name == name:
                return self.holds[:, i]
        return np.zeros(len(self.rollouts), dtype=np.bool_)

    def where(self, keep: Bools) -> Table:
        """The kept rows, without groups that have no longer both winners and losers."""
        groups = self.groups
        won = np.bincount(self.strata, weights=keep & self.wins, minlength=groups)
        lost = np.bincount(self.strata, weights=keep & ~self.wins, minlength=groups)
        rows = keep & ((won > 0) & (lost > 0))[self.strata] if groups else keep
        _, strata = np.unique(self.strata[rows], return_inverse=True)
        return replace(
            self,
            rollouts=tuple(r for r, kept in zip(self.rollouts, rows, strict=True) if kept),
            strata=strata.astype(np.intp),
            wins=self.wins[rows],
            holds=self.holds[rows],
        )


def tabulate(groups: Sequence[tuple[Task, Group]]) -> Table:
    """Count the features of every rollout of the informative groups that has won or lost.

    Rollouts without an advantage (unscored, broken off) and those at par take no part. Words that occur
    in the answers of *any* of the tasks are masked.
    """
    masked = masked_words(task for task, _ in groups)
    rows = [(task, rollout) for task, group in groups for rollout in _contrasted(group)]
    found = [features_of(task, rollout, masked) for task, rollout in rows]
    features: dict[str, Feature] = {}
    for one in found:
        for name, feature in one.items():
            features.setdefault(name, feature)
    names = sorted(features)
    place = {name: i for i, name in enumerate(names)}
    holds = np.zeros((len(rows), len(names)), dtype=np.bool_)
    for i, one in enumerate(found):
        holds[i, [place[name] for name in one]] = True
    numbers = {gid: i for i, gid in enumerate(dict.fromkeys(r.group_id for _, r in rows))}
    return Table(
        rollouts=tuple(r for _, r in rows),
        tasks={task.id: task for task, _ in rows},
        strata=np.array([numbers[r.group_id] for _, r in rows], dtype=np.intp),
        wins=np.array([(r.advantage or 0.0) > 0 for _, r in rows], dtype=np.bool_),
        columns=tuple(features[name] for name in names),
        holds=holds,
    )


def _contrasted(group: Group) -> Iterator[Rollout]:
    if group.status != "informative":
        return
    told = [r for r in group.rollouts if r.error is None and r.reward is not None and r.advantage]
    if len({(r.advantage or 0.0) > 0 for r in told}) == 2:
        yield from told
