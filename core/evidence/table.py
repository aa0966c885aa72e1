"""Table: the scored rollouts of a batch as rows, their features as boolean columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.advantage import SPREAD
from core.evidence.features import Feature

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

MIN_BEST = 5
"""As few as this many rollouts say what the best have in common."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are rollouts with an advantage, in groups whose outcomes differ."""

    rollout_ids: tuple[str, ...]
    group_ids: tuple[str, ...]
    """By stratum."""
    strata: NDArray[np.intp]
    """Number of the group of each row, 0 to groups - 1, not falling; shape [rows]."""
    wins: Bools
    """A > 0; shape [rows]. Those at par are neither winners nor losers."""
    losses: Bools
    """A < 0; shape [rows]."""
    rewards: Floats
    """What was earned outside (extrinsic): what makes a group informative is what is contrasted; shape [rows]."""
    columns: tuple[Feature, ...]
    holds: Bools
    """Whether the feature of a column holds for the rollout of a row; shape [rows, columns]."""
    models: tuple[str, ...] = ()
    """That the rollouts came from."""

    @property
    def rows(self) -> int:
        return len(self.rollout_ids)

    @property
    def groups(self) -> int:
        return len(self.group_ids)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Rows of each group; shape [groups]."""
        return np.bincount(self.strata, minlength=self.groups)

    @property
    def best(self) -> Bools:
        """The winners with the highest rewards: at least `MIN_BEST` where there are so many, ties included."""
        won = np.sort(self.rewards[self.wins])[::-1]
        if not len(won):
            return self.wins
        top: float = won[min(MIN_BEST, len(won)) - 1] - SPREAD
        return np.asarray(self.wins & (self.rewards >= top), dtype=np.bool_)

    def by_group(self, values: NDArray[np.bool_]) -> Floats:
        """Sums over the rows of each group; shape [groups, columns]."""
        if not self.rows:
            return np.zeros((0, values.shape[1]))
        first = np.searchsorted(self.strata, np.arange(self.groups))
        return np.asarray(np.add.reduceat(values, first, axis=0, dtype=np.float64))

    def column(self, name: str) -> Bools:
        """One feature of every row; nowhere true where no row has it."""
        for i, feature in enumerate(self.columns):
            if feature.name == name:
                return self.holds[:, i]
        return np.zeros(self.rows, dtype=np.bool_)

    def where(self, keep: Bools) -> Table:
        """The kept rows, without groups whose kept rewards no longer differ."""
        low, high = np.full(self.groups, np.inf), np.full(self.groups, -np.inf)
        np.minimum.at(low, self.strata[keep], self.rewards[keep])
        np.maximum.at(high, self.strata[keep], self.rewards[keep])
        told = high - low > SPREAD
        rows = keep & told[self.strata]
        number = np.cumsum(told) - 1
        return replace(
            self,
            rollout_ids=tuple(r for r, kept in zip(self.rollout_ids, rows, strict=True) if kept),
            group_ids=tuple(g for g, kept in zip(self.group_ids, told, strict=True) if kept),
            strata=number[self.strata[rows]],
            wins=self.wins[rows],
            losses=self.losses[rows],
            rewards=self.rewards[rows],
            holds=self.holds[rows],
        )

    def without_words(self) -> Table:
        """The same without the columns that no lesson can be made of."""
        kept = [i for i, feature in enumerate(self.columns) if not feature.is_word]
        return replace(self, columns=tuple(self.columns[i] for i in kept), holds=self.holds[:, kept])
