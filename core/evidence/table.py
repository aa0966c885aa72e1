"""Table: the scored rollouts of a batch as rows, their features as boolean columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.advantage import SPREAD
from core.evidence.features import Feature, features_of, masked_words
from core.rollout import Group, Rollout, Task

Bools = NDArray[np.bool_]

MIN_BEST = 5
"""As few as this many rollouts say what the best have in common."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are rollouts with an advantage, in groups whose rewards differ."""

    rollouts: tuple[Rollout, ...]
    tasks: Mapping[str, Task]
    """By id: the tasks of the rollouts."""
    strata: NDArray[np.intp]
    """Number of the group of each row, 0 to groups - 1, not falling; shape [rows]."""
    wins: Bools
    """A > 0; shape [rows]. Those at par are neither winners nor losers."""
    losses: Bools
    """A < 0; shape [rows]."""
    rewards: NDArray[np.float64]
    """Shape [rows]."""
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
        won = np.sort(self.rewards[self.wins])[::-1]
        if not len(won):
            return self.wins
        top: float = won[min(MIN_BEST, len(won)) - 1] - SPREAD
        return np.asarray(self.wins & (self.rewards >= top), dtype=np.bool_)

    def column(self, name: str) -> Bools:
        """One feature of every row; nowhere true where no row has it."""
        for i, feature in enumerate(self.columns):
            if feature.name == name:
                return self.holds[:, i]
        return np.zeros(len(self.rollouts), dtype=np.bool_)

    def where(self, keep: Bools) -> Table:
        """The kept rows, without groups whose kept rewards no longer differ."""
        if not keep.any():
            rows = keep
        else:
            low, high = np.full(self.groups, np.inf), np.full(self.groups, -np.inf)
            np.minimum.at(low, self.strata[keep], self.rewards[keep])
            np.maximum.at(high, self.strata[keep], self.rewards[keep])
            rows = keep & (high - low > SPREAD)[self.strata]
        _, strata = np.unique(self.strata[rows], return_inverse=True)
        return replace(
            self,
            rollouts=tuple(r for r, kept in zip(self.rollouts, rows, strict=True) if kept),
            strata=strata.astype(np.intp),
            wins=self.wins[rows],
            losses=self.losses[rows],
            rewards=self.rewards[rows],
            holds=self.holds[rows],
        )


def tabulate(groups: Sequence[tuple[Task, Group]]) -> Table:
    """Count the features of every scored rollout of the informative groups.

    Rollouts without an advantage (unscored, broken off) take no part. Words that occur
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
        losses=np.array([(r.advantage or 0.0) < 0 for _, r in rows], dtype=np.bool_),
        rewards=np.array([r.reward for _, r in rows], dtype=np.float64),
        columns=tuple(features[name] for name in names),
        holds=holds,
    )


def _contrasted(group: Group) -> Iterator[Rollout]:
    if group.status != "informative":
        return
    told = [r for r in group.rollouts if r.error is None and r.reward is not None and r.advantage is not None]
    rewards = [r.reward for r in told if r.reward is not None]
    if rewards and max(rewards) - min(rewards) > SPREAD:
        yield from told
