"""Counts: what was counted of some groups, and the tables and contrasts that are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.evidence.contrast import MIN_ROLLOUTS, PERMUTATIONS, Contrast, contrast
from core.evidence.features import Feature
from core.evidence.matter import Matter
from core.evidence.table import Bools, Table
from core.evidence.vocabulary import Keys, Vocabulary, is_word

MAX_WORD_COLUMNS = 200
"""So many words and word pairs are tested: those that differ most within groups; outcomes play no part."""

Places = NDArray[np.intp]


class Row(NamedTuple):
    """What stays of one contrasted rollout, its features aside."""

    rollout_id: str
    outcome: float
    sign: int
    """Of its advantage: 1, 0 or -1."""
    model: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What stays of one group."""

    domain: str
    acted: bool = False
    """Whether any of its rollouts called a tool."""
    rows: tuple[Row, ...] = ()
    """Its contrasted rollouts; none where the group teaches nothing."""
    sizes: tuple[int, ...] = ()
    """How many keys each row has."""
    keys: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What was counted of some groups; does not change."""

    groups: Mapping[str, Counted]
    """By id, in the order of their ids."""
    matters: Mapping[str, Matter]
    """By task id, in that order."""
    answers: frozenset[str]
    """Normalised: no lesson may give one of them away."""
    masked: frozenset[str]
    """Words of the answers."""
    vocabulary: Vocabulary
    """Goes on growing; what our keys stand for stays."""
    _contrasts: dict[tuple[object, ...], Contrast] = field(default_factory=dict)

    @property
    def domains(self) -> tuple[str, ...]:
        """Of the groups that teach, sorted."""
        return tuple(sorted({g.domain for g in self.groups.values() if g.rows}))

    def asked(self, domains: Iterable[str]) -> list[Matter]:
        """The tasks of some domains, those whose groups teach nothing included."""
        wanted = set(domains)
        return [m for m in self.matters.values() if m.domain in wanted]

    def contrast(
        self, domains: Iterable[str], *, seed: Sequence[int] = (0,), permutations: int = PERMUTATIONS
    ) -> Contrast:
        """The contrast of the groups of some domains; asked again, it costs nothing."""
        wanted = tuple(sorted(set(domains)))
        key = (wanted, tuple(seed), permutations)
        if key not in self._contrasts:
            self._contrasts[key] = contrast(self.table(wanted), seed=seed, permutations=permutations)
        return self._contrasts[key]

    def table(self, domains: Iterable[str] | None = None, *, least: int = MIN_ROLLOUTS) -> Table:
        """The contrasted rollouts as rows, and as columns what at least so many of them show.

        Args:
            domains: whose groups; None: all.
            least: so many rollouts must show a feature; how they were stopped is told in any case. Where that
                is more than one, words are limited to `MAX_WORD_COLUMNS`, too.
        """
        wanted = None if domains is None else set(domains)
        groups = {i: g for i, g in self.groups.items() if g.rows and (wanted is None or g.domain in wanted)}
        rows = [row for g in groups.values() for row in g.rows]
        strata = np.repeat(np.arange(len(groups)), [len(g.rows) for g in groups.values()]).astype(np.intp)
        signs = np.array([row.sign for row in rows], dtype=np.int8)
        columns, holds = self._columns(list(groups.values()), strata, least)
        return Table(
            rollout_ids=tuple(row.rollout_id for row in rows),
            group_ids=tuple(groups),
            strata=strata,
            wins=signs > 0,
            losses=signs < 0,
            rewards=np.array([row.outcome for row in rows], dtype=np.float64),
            columns=columns,
            holds=holds,
            models=tuple(sorted({row.model for row in rows if row.model})),
        )

    def _columns(
        self, groups: Sequence[Counted], strata: Places, least: int
    ) -> tuple[tuple[Feature, ...], Bools]:
        """The features that become columns, by name, and where they hold; shape [rows, columns]."""
        keys = np.concatenate([np.empty(0, dtype=np.uint64), *(g.keys for g in groups)])
        row = np.repeat(np.arange(len(strata)), [n for g in groups for n in g.sizes])
        unique, place = np.unique(keys, return_inverse=True)
        keep = (np.bincount(place, minlength=len(unique)) >= least) | self.vocabulary.stops(unique)
        keep &= ~self.vocabulary.hidden(unique, self.masked)
        words = keep & is_word(unique)
        if least > 1 and words.sum() > MAX_WORD_COLUMNS:
            keep &= ~words
            keep[self._telling(unique, words, place, row, strata)] = True
        kept = np.flatnonzero(keep)
        features = {self.vocabulary.feature(int(unique[i])): i for i in kept}
        ordered = sorted(features, key=lambda f: f.name)
        column = np.full(len(unique), -1)
        column[[features[f] for f in ordered]] = np.arange(len(ordered))
        holds = np.zeros((len(strata), len(ordered)), dtype=np.bool_)
        told = column[place] >= 0
        holds[row[told], column[place][told]] = True
        return tuple(ordered), holds

    def _telling(self, unique: Keys, words: Bools, place: Places, row: Places, strata: Places) -> list[int]:
        """Places of the words that differ most within groups: m (n - m) / n, summed over the groups.

        Here m of the n rollouts of a group say the word.
        """
        told = words[place]
        size = np.bincount(strata)
        cell, m = np.unique(strata[row[told]] * len(unique) + place[told], return_counts=True)
        group, word = np.divmod(cell, len(unique))
        spread = np.bincount(word, weights=m * (size[group] - m) / size[group], minlength=len(unique))
        names = {int(i): self.vocabulary.feature(int(unique[i])).name for i in np.flatnonzero(words)}
        return sorted(names, key=lambda i: (-round(float(spread[i]), 9), names[i]))[:MAX_WORD_COLUMNS]
