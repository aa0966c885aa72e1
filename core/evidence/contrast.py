"""Contrast: which features winners have and losers have not, and whether chance would do the same.

The features of a batch are counted in a `Table`, tested in `cmh`, and handed back as findings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.evidence.cmh import Tested, max_t, test_columns
from core.evidence.features import Feature
from core.evidence.table import Bools, Table
from core.experience import Evidence, Finding

PERMUTATIONS = 2000
MIN_ROLLOUTS = 5
"""A feature must hold for at least this many rollouts, and fail to hold for as many (Winnow, DESIGN 5)."""

MIN_GROUPS = 3
"""A feature must differ inside at least this many groups: one task teaches nothing about others."""

MAX_EXAMPLES = 6
"""Example rollouts of each side named in an evidence."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The features of a batch, tested."""

    findings: tuple[Finding, ...]
    """Smallest corrected p first; of features that are the same column, the one easiest to say."""
    features: Mapping[str, Feature]
    """By name: those of the findings."""
    same: Mapping[str, tuple[str, ...]]
    """By name of a finding: further features with exactly its rollouts (or exactly the others)."""
    gains: Mapping[str, float]
    """By name: mean reward with the feature minus without it, compared within groups."""
    table: Table
    permutations: int

    @property
    def tried(self) -> int:
        """Features tested that a lesson can be made of: p values of these are corrected over them."""
        return sum(not f.is_word for f in self.features.values())

    def finding(self, name: str) -> Finding | None:
        """The finding of a feature, under whatever name its column was kept."""
        for found in self.findings:
            if found.feature == name or name in self.same.get(found.feature, ()):
                return found
        return None

    def gain_of(self, name: str) -> float | None:
        """What a feature is worth in reward, under whatever name its column was kept; None if untested."""
        found = self.finding(name)
        if found is None:
            return None
        return self.gains[found.feature] * (1 if self._alike(name, found.feature) else -1)

    def under(self, name: str) -> Finding | None:
        """The finding of a feature in that feature's own words; counts turned round for an opposite column."""
        found = self.finding(name)
        if found is None or found.feature == name:
            return found
        label = next(f.label for f in self.table.columns if f.name == name)
        if self._alike(name, found.feature):
            return found.model_copy(update={"feature": name, "label": label})
        return found.model_copy(
            update={
                "feature": name,
                "label": label,
                "winners_with": found.winners - found.winners_with,
                "losers_with": found.losers - found.losers_with,
                "odds_ratio": 1 / found.odds_ratio,
            }
        )

    def _alike(self, name: str, kept: str) -> bool:
        return bool((self.table.column(name) == self.table.column(kept)).all())

    def sentence(self, finding: Finding) -> str:
        """The counts in one line, with what the feature is worth."""
        return sentence_of(finding, gain=self.gain_of(finding.feature))

    def evidence(self, findings: Sequence[Finding]) -> Evidence:
        """The findings with their counts in words and their rollouts, the first finding's examples."""
        if not findings:
            return Evidence(features_tried=self.tried, permutations=self.permutations)
        first = findings[0]
        holds, wins = self.table.column(first.feature), self.table.wins
        if (self.gain_of(first.feature) or 0.0) < 0:
            holds = ~holds
        good = _ids(self.table, wins & holds)[:MAX_EXAMPLES]
        bad = _ids(self.table, self.table.losses & ~holds)[:MAX_EXAMPLES]
        return Evidence(
            findings=tuple(findings),
            group_ids=_varying_groups(self.table, first.feature),
            rollout_ids=(*good, *bad),
            sentence=self.sentence(first),
            features_tried=self.tried,
            permutations=self.permutations,
        )


def contrast(table: Table, *, seed: Sequence[int] = (0,), permutations: int = PERMUTATIONS) -> Contrast:
    """Contrast winners (A > 0) with the losers (A < 0) of their own groups over all counted features.

    With fewer than `MIN_GROUPS` groups nothing has enough support, so one group alone never finds anything.

    Args:
        table: of a batch, or of only those rollouts that follow a lesson (`Table.where`).
        seed: of the permutations; the same seed gives the same findings.
        permutations: how often the outcomes are permuted; the smallest corrected p is 1 / (permutations + 1).
    """
    kept, same = _testable(table)
    if not kept:
        return Contrast((), {}, {}, {}, table, permutations)
    tested = test_columns(table, kept)
    is_word = np.array([table.columns[i].is_word for i in kept], dtype=np.bool_)
    corrected = max_t(table, tested, is_word, seed, permutations)
    order = np.lexsort((_ranks(table, kept), -tested.statistic, corrected))
    features = [table.columns[kept[i]] for i in order]
    return Contrast(
        findings=tuple(_finding(table, tested, i, p_corrected=float(corrected[i])) for i in order),
        features={f.name: f for f in features},
        same={f.name: same[f.name] for f in features if same[f.name]},
        gains={f.name: float(tested.gain[i]) for f, i in zip(features, order, strict=True)},
        table=table,
        permutations=permutations,
    )


def describe(table: Table, *, limit: int = 8) -> tuple[Finding, ...]:
    """What sets the winners apart, clearest first, without a correction: `p_corrected` is 1."""
    support = table.holds.sum(axis=0)
    kept, _ = _distinct(table, [int(i) for i in np.flatnonzero((support > 0) & (support < table.rows))])
    if not kept:
        return ()
    tested = test_columns(table, kept)
    order = np.lexsort((_ranks(table, kept), -tested.statistic))[:limit]
    return tuple(_finding(table, tested, i, p_corrected=1.0) for i in order)


def sentence_of(finding: Finding, *, gain: float | None = None) -> str:
    """The counts in one line: "7 of 8 winners called read_json first, 1 of 9 losers (...)".

    Args:
        finding: what was counted.
        gain: what the feature is worth in reward within a group, if that is to be told.
    """
    counts = (
        f"{finding.winners_with} of {finding.winners} winners {finding.label}, "
        f"{finding.losers_with} of {finding.losers} losers"
    )
    where = "1 group" if finding.groups == 1 else f"differing in {finding.groups} groups"
    worth = "" if gain is None else f"reward {gain:+.2f}; "
    ratio, p = _short(finding.odds_ratio), _p(finding.p_corrected)
    return f"{counts} ({where}; {worth}odds ratio {ratio}; corrected p {p})"


def _short(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def _p(p: float) -> str:
    if p < 0.001:
        return "< .001"
    return "1" if p >= 0.9995 else f"{p:.3f}".lstrip("0")


# --- which columns can be tested ---------------------------------------------------------------------


def _testable(table: Table) -> tuple[list[int], dict[str, tuple[str, ...]]]:
    """Columns with enough support on both sides, equal ones once. Labels play no part in the choice."""
    rows = table.rows
    if rows == 0 or table.groups < MIN_GROUPS:
        return [], {}
    support = table.holds.sum(axis=0)
    per_group = table.by_group(table.holds)
    size = table.sizes[:, None]
    varying = ((per_group > 0) & (per_group < size)).sum(axis=0)
    enough = (support >= MIN_ROLLOUTS) & (rows - support >= MIN_ROLLOUTS) & (varying >= MIN_GROUPS)
    return _distinct(table, [int(i) for i in np.flatnonzero(enough)])


def _distinct(table: Table, columns: Sequence[int]) -> tuple[list[int], dict[str, tuple[str, ...]]]:
    """Of columns that are equal, or each other's opposite, the one that is easiest to say."""
    alike: dict[bytes, list[int]] = {}
    for i in columns:
        bits = table.holds[:, i]
        alike.setdefault(np.packbits(bits ^ bits[0]).tobytes(), []).append(i)
    kept, same = [], {}
    for members in alike.values():
        members.sort(key=lambda i: (table.columns[i].rank, table.columns[i].name))
        kept.append(members[0])
        same[table.columns[members[0]].name] = tuple(table.columns[i].name for i in members[1:])
    return sorted(kept), same


def _ranks(table: Table, kept: Sequence[int]) -> NDArray[np.intp]:
    return np.array([table.columns[i].rank for i in kept], dtype=np.intp)


# --- results -----------------------------------------------------------------------------------------


def _finding(table: Table, tested: Tested, i: int, *, p_corrected: float) -> Finding:
    feature, holds = table.columns[tested.kept[i]], tested.held[:, i]
    return Finding(
        feature=feature.name,
        label=feature.label,
        winners_with=int((holds & table.wins).sum()),
        winners=int(table.wins.sum()),
        losers_with=int((holds & table.losses).sum()),
        losers=int(table.losses.sum()),
        odds_ratio=float(tested.odds_ratio[i]),
        p=math.erfc(float(tested.statistic[i]) / math.sqrt(2)),
        p_corrected=p_corrected,
        groups=int(tested.groups[i]),
    )


def _ids(table: Table, chosen: Bools) -> tuple[str, ...]:
    return tuple(table.rollout_ids[i] for i in np.flatnonzero(chosen))


def _varying_groups(table: Table, name: str) -> tuple[str, ...]:
    """Ids of the groups in which a feature differs between rollouts."""
    holds = table.column(name)[:, None]
    some = table.by_group(holds)[:, 0]
    return tuple(table.group_ids[i] for i in np.flatnonzero((some > 0) & (some < table.sizes)))
