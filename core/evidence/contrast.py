"""Contrast: which features winners have and losers have not, and whether chance would do the same.

The test is Cochran's and Mantel and Haenszel's (1959), stratified by group: winners are only ever compared
with the losers of their own group, so an easy task cannot lend its habits to a good result. Correction over
all features tried: step-down max-T (Westfall and Young 1993), labels permuted within groups. Words are only
shown, never made into a lesson, so they do not tax the others: the p value of a word is corrected over all
features, that of any other feature over all but the words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.evidence.features import Feature
from core.evidence.table import Bools, Table, tabulate
from core.experience import Evidence, Finding
from core.rollout import Group, Rollout, Task

PERMUTATIONS = 2000
MIN_ROLLOUTS = 5
"""A feature must hold for at least this many rollouts, and fail to hold for as many (Winnow, DESIGN 5)."""

MIN_GROUPS = 3
"""A feature must differ inside at least this many groups: one task teaches nothing about others."""

MAX_EXAMPLES = 6
"""Example rollouts of each side named in an evidence."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Contrast:
    """The features of a batch, tested."""

    findings: tuple[Finding, ...]
    """Smallest corrected p first; of features that are the same column, the one easiest to say."""
    features: Mapping[str, Feature]
    """By name: those of the findings."""
    same: Mapping[str, tuple[str, ...]]
    """By name of a finding: further features with exactly its rollouts (or exactly the others)."""
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

    def evidence(self, findings: Sequence[Finding]) -> Evidence:
        """The findings with their counts in words and their rollouts, the first finding's examples."""
        if not findings:
            return Evidence(features_tried=self.tried, permutations=self.permutations)
        first = findings[0]
        holds, wins = self.table.column(first.feature), self.table.wins
        if first.odds_ratio < 1:
            holds = ~holds
        good = _ids(self.table.rollouts, wins & holds)[:MAX_EXAMPLES]
        bad = _ids(self.table.rollouts, ~wins & ~holds)[:MAX_EXAMPLES]
        return Evidence(
            findings=tuple(findings),
            group_ids=_varying_groups(self.table, first.feature),
            rollout_ids=(*good, *bad),
            sentence=sentence_of(first),
            features_tried=self.tried,
            permutations=self.permutations,
        )


def contrast(
    groups: Sequence[tuple[Task, Group]], *, seed: int | Sequence[int] = 0, permutations: int = PERMUTATIONS
) -> Contrast:
    """Contrast winners (A > 0) with the losers (A < 0) of their own groups over all counted features.

    Groups that are not informative and rollouts without an advantage take no part. With fewer than
    `MIN_GROUPS` groups nothing has enough support, so one group alone never finds anything.

    Args:
        groups: each group with its task.
        seed: of the permutations; the same seed gives the same findings.
        permutations: how often the labels are permuted; the smallest corrected p is 1 / (permutations + 1).
    """
    return contrast_table(tabulate(groups), seed=seed, permutations=permutations)


def contrast_table(
    table: Table, *, seed: int | Sequence[int] = 0, permutations: int = PERMUTATIONS
) -> Contrast:
    """The same for a table, e.g. one of only those rollouts that follow a lesson (`Table.where`)."""
    kept, same = _testable(table)
    if not kept:
        return Contrast((), {}, {}, table, permutations)
    held = table.holds[:, kept]
    difference, variance, spread = _cmh_parts(held, table)
    statistic = _statistic(difference, variance)
    is_word = np.array([table.columns[i].is_word for i in kept], dtype=np.bool_)
    corrected = _max_t(held, table, statistic, variance, is_word, seed, permutations)
    ratios = _odds_ratios(held, table)
    order = np.lexsort((_ranks(table, kept), -statistic, corrected))
    features = [table.columns[kept[i]] for i in order]
    return Contrast(
        findings=tuple(
            _finding(
                table.columns[kept[i]],
                held[:, i],
                table.wins,
                odds_ratio=float(ratios[i]),
                p=math.erfc(float(statistic[i]) / math.sqrt(2)),
                p_corrected=float(corrected[i]),
                groups=int(spread[i]),
            )
            for i in order
        ),
        features={f.name: f for f in features},
        same={f.name: same[f.name] for f in features if same[f.name]},
        table=table,
        permutations=permutations,
    )


def describe_group(task: Task, group: Group, *, limit: int = 8) -> tuple[Finding, ...]:
    """What sets the winners of one group apart, for display beside it: no test of significance.

    Four against four can at best give p = .029 before any correction, so `p_corrected` is 1 by
    construction; `p` is the one stratum's, for ordering only.
    """
    table = tabulate([(task, group)])
    if not len(table.rollouts):
        return ()
    varying = [i for i in range(len(table.columns)) if 0 < table.holds[:, i].sum() < len(table.rollouts)]
    kept, _ = _distinct(table, varying)
    if not kept:
        return ()
    held = table.holds[:, kept]
    difference, variance, _ = _cmh_parts(held, table)
    statistic = _statistic(difference, variance)
    ratios = _odds_ratios(held, table)
    order = np.lexsort((_ranks(table, kept), -statistic))[:limit]
    return tuple(
        _finding(
            table.columns[kept[i]],
            held[:, i],
            table.wins,
            odds_ratio=float(ratios[i]),
            p=math.erfc(float(statistic[i]) / math.sqrt(2)),
            p_corrected=1.0,
            groups=1,
        )
        for i in order
    )


def sentence_of(finding: Finding) -> str:
    """The counts in one line: "7 of 8 winners called read_json first, 1 of 9 losers (...)"."""
    counts = (
        f"{finding.winners_with} of {finding.winners} winners {finding.label}, "
        f"{finding.losers_with} of {finding.losers} losers"
    )
    where = "1 group" if finding.groups == 1 else f"differing in {finding.groups} groups"
    return (
        f"{counts} ({where}; odds ratio {_short(finding.odds_ratio)}; corrected p {_p(finding.p_corrected)})"
    )


def _short(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def _p(p: float) -> str:
    if p < 0.001:
        return "< .001"
    return "1" if p >= 0.9995 else f"{p:.3f}".lstrip("0")


# --- which columns can be tested ---------------------------------------------------------------------


def _testable(table: Table) -> tuple[list[int], dict[str, tuple[str, ...]]]:
    """Columns with enough support on both sides, equal ones once. Labels play no part in the choice."""
    rows = len(table.rollouts)
    if rows == 0 or table.groups < MIN_GROUPS:
        return [], {}
    support = table.holds.sum(axis=0)
    per_group = _by_group(table.holds, table)
    size = np.bincount(table.strata)[:, None]
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


# --- Cochran-Mantel-Haenszel -------------------------------------------------------------------------


def _by_group(values: Bools, table: Table) -> Floats:
    """Sums over the rows of each group; shape [groups, columns]."""
    sums = np.zeros((table.groups, values.shape[1]))
    np.add.at(sums, table.strata, values.astype(np.float64))
    return sums


def _cmh_parts(held: Bools, table: Table) -> tuple[Floats, Floats, Floats]:
    """Observed minus expected winners with the feature, its variance, and the groups it varies in.

    Of a group of n rollouts, w winners, m with the feature: E = w m / n and
    V = w (n - w) m (n - m) / (n^2 (n - 1)). Permuting labels within groups changes neither.
    """
    n = np.bincount(table.strata).astype(np.float64)[:, None]
    w = _by_group(table.wins[:, None], table)
    m = _by_group(held, table)
    a = _by_group(held & table.wins[:, None], table)
    variance = w * (n - w) * m * (n - m) / (n**2 * np.maximum(n - 1, 1))
    return (a - w * m / n).sum(axis=0), variance.sum(axis=0), ((m > 0) & (m < n)).sum(axis=0)


def _statistic(difference: Floats, variance: Floats) -> Floats:
    """|z|, with the continuity correction of 1/2 that keeps p honest for small counts (as in R)."""
    return np.maximum(np.abs(difference) - 0.5, 0.0) / np.sqrt(np.maximum(variance, 1e-300))


def _odds_ratios(held: Bools, table: Table) -> Floats:
    """Mantel-Haenszel, pooled over the groups in which the feature varies, 0.5 added to each cell."""
    n = np.bincount(table.strata).astype(np.float64)[:, None]
    w = _by_group(table.wins[:, None], table)
    m = _by_group(held, table)
    a = _by_group(held & table.wins[:, None], table)
    varies = (m > 0) & (m < n)
    b, c, d = m - a, w - a, n - w - m + a
    up = ((a + 0.5) * (d + 0.5) / (n + 2) * varies).sum(axis=0)
    down = ((b + 0.5) * (c + 0.5) / (n + 2) * varies).sum(axis=0)
    return np.asarray(up / down, dtype=np.float64)


# --- max-T -------------------------------------------------------------------------------------------


def _max_t(
    held: Bools,
    table: Table,
    statistic: Floats,
    variance: Floats,
    is_word: Bools,
    seed: int | Sequence[int],
    permutations: int,
) -> Floats:
    """Corrected p of each column, shape [columns]."""
    n = np.bincount(table.strata).astype(np.float64)[:, None]
    expected = (_by_group(table.wins[:, None], table) * _by_group(held, table) / n).sum(axis=0)
    wins = _permuted(table, np.random.default_rng(seed), permutations)
    drawn = _statistic(wins @ held.astype(np.float32) - expected, variance)
    corrected = _step_down(statistic, drawn)
    if is_word.any() and not is_word.all():
        corrected[~is_word] = _step_down(statistic[~is_word], drawn[:, ~is_word])
    return corrected


def _step_down(statistic: Floats, drawn: Floats) -> Floats:
    """Each column against the largest of itself and all weaker ones, so that strong findings hide none.

    Args:
        statistic: observed, shape [columns].
        drawn: under permuted labels, shape [permutations, columns].
    """
    order = np.argsort(-statistic, kind="stable")
    worst = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    as_strong = (worst >= statistic[order] - 1e-9).sum(axis=0)
    corrected = np.empty_like(statistic)
    corrected[order] = np.maximum.accumulate((1 + as_strong) / (len(drawn) + 1))
    return corrected


def _permuted(table: Table, rng: np.random.Generator, permutations: int) -> NDArray[np.float32]:
    """Labels shuffled within each group; shape [permutations, rows], 1.0 for a winner."""
    shuffled = np.empty((permutations, len(table.wins)), dtype=np.float32)
    for group in range(table.groups):
        rows = np.flatnonzero(table.strata == group)
        order = rng.random((permutations, len(rows))).argsort(axis=1)
        shuffled[:, rows] = table.wins[rows][order]
    return shuffled


# --- results -----------------------------------------------------------------------------------------


def _finding(
    feature: Feature,
    holds: Bools,
    wins: Bools,
    *,
    odds_ratio: float,
    p: float,
    p_corrected: float,
    groups: int,
) -> Finding:
    return Finding(
        feature=feature.name,
        label=feature.label,
        winners_with=int((holds & wins).sum()),
        winners=int(wins.sum()),
        losers_with=int((holds & ~wins).sum()),
        losers=int((~wins).sum()),
        odds_ratio=odds_ratio,
        p=min(p, 1.0),
        p_corrected=p_corrected,
        groups=groups,
    )


def _ids(rollouts: Sequence[Rollout], chosen: Bools) -> tuple[str, ...]:
    return tuple(r.id for r, take in zip(rollouts, chosen, strict=True) if take)


def _varying_groups(table: Table, name: str) -> tuple[str, ...]:
    """Ids of the groups in which a feature differs between rollouts."""
    seen: dict[str, set[bool]] = {}
    for rollout, holds in zip(table.rollouts, table.column(name), strict=True):
        seen.setdefault(rollout.group_id, set()).add(bool(holds))
    return tuple(group_id for group_id, values in seen.items() if len(values) == 2)
