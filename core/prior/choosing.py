"""Which tokens good replies have and bad ones have not: counted within groups, in a 1-bit form."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from core.prior.prior import Factor, PriorRules, PriorToken

FOLDS = 5
"""Parts that the tasks are dealt into where q is estimated."""

MIN_GROUPS = 3
"""Groups in which a token must be in some replies and not in others."""

MIN_Z = 2.0
"""Least |z| of a token within groups, not corrected for the many that were looked at: that is what q is for."""


class Reply(NamedTuple):
    """One reply with an advantage other than 0."""

    group: str
    task: str
    good: bool
    """A > 0; else A < 0."""
    tokens: frozenset[int]


class Chosen(NamedTuple):
    """The tokens of a factor."""

    tokens: tuple[PriorToken, ...]
    masked: int


def derive_factor(
    domain: str,
    replies: Sequence[Reply],
    masked: Collection[int],
    piece: Callable[[int], str],
    rules: PriorRules,
    source: str = "",
) -> Factor:
    """Choose the tokens of a factor, and count on other tasks how well they tell winners from losers.

    Args:
        domain: of the tasks it will be applied to.
        replies: of informative training groups; those with an advantage of 0 are left out before.
        masked: tokens of right answers.
        piece: gives the text of a token.
        rules: how many, and with what support.
        source: the experience it is for.
    """
    tokens, hidden = choose(replies, masked, piece, rules)
    tasks = sorted({r.task for r in replies})
    fold = {task: i % FOLDS for i, task in enumerate(tasks)}
    wins = contrasts = 0
    for held in range(FOLDS):
        others = [r for r in replies if fold[r.task] != held]
        apart = [r for r in replies if fold[r.task] == held]
        won, differed = tell_apart(choose(others, masked, piece, rules).tokens, apart)
        wins, contrasts = wins + won, contrasts + differed
    return Factor(
        domain=domain,
        source=source,
        tokens=tokens,
        alpha=sum(abs(t.log_odds) for t in tokens) / len(tokens) if tokens else 0.0,
        wins=wins,
        contrasts=contrasts,
        groups=len({r.group for r in replies}),
        replies=len(replies),
        masked=hidden,
    )


def choose(
    replies: Sequence[Reply], masked: Collection[int], piece: Callable[[int], str], rules: PriorRules
) -> Chosen:
    """The k tokens with the largest |z| among those with support, without the masked ones."""
    found = [
        t for t in _counted(replies, rules.support) if abs(t[1].z) >= MIN_Z and t[1].varied >= MIN_GROUPS
    ]
    found.sort(key=lambda t: (-abs(t[1].z), t[0]))
    open_ones = [t for t in found if t[0] not in masked]
    tokens = tuple(_token(i, c, piece(i)) for i, c in open_ones[: rules.k])
    least = abs(tokens[-1].z) if len(tokens) == rules.k else MIN_Z
    return Chosen(tokens, sum(i in masked and abs(c.z) >= least for i, c in found))


def tell_apart(tokens: Sequence[PriorToken], replies: Iterable[Reply]) -> tuple[int, int]:
    """In how many groups the winners have more of the tokens than the losers, and in how many they differ.

    A reply has as much as it has promoted tokens, less the demoted ones; groups are compared by the means.
    """
    sign = {t.id: t.sign for t in tokens}
    by_group: dict[str, dict[bool, list[int]]] = defaultdict(lambda: {True: [], False: []})
    for r in replies:
        by_group[r.group][r.good].append(sum(sign.get(t, 0) for t in r.tokens))
    wins = contrasts = 0
    for has in by_group.values():
        good, bad = has[True], has[False]
        ahead = sum(good) * len(bad) - sum(bad) * len(good)  # whole numbers: a tie is a tie
        wins += ahead > 0
        contrasts += ahead != 0
    return wins, contrasts


class _Count(NamedTuple):
    """How often a token is in winners and losers, within groups."""

    winners_with: int
    winners: int
    losers_with: int
    losers: int
    varied: int
    log_odds: float
    z: float


def _counted(replies: Sequence[Reply], support: int) -> list[tuple[int, _Count]]:
    """The tokens that enough replies have, with their counts over all groups that have winners and losers."""
    groups: dict[str, list[Reply]] = defaultdict(list)
    for r in replies:
        groups[r.group].append(r)
    mixed = [g for g in groups.values() if len({r.good for r in g}) == 2]
    winners, losers = sum(r.good for g in mixed for r in g), sum(not r.good for g in mixed for r in g)
    cells: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    for group in mixed:
        w, n = sum(r.good for r in group), len(group)
        for token in set().union(*(r.tokens for r in group)):
            a = sum(token in r.tokens for r in group if r.good)
            b = sum(token in r.tokens for r in group if not r.good)
            cells[token].append((a, b, w, n - w))
    return [
        (token, _count(strata, winners, losers))
        for token, strata in cells.items()
        if sum(a + b for a, b, _, _ in strata) >= support
    ]


def _count(strata: Sequence[tuple[int, int, int, int]], winners: int, losers: int) -> _Count:
    """Mantel and Haenszel over the groups: the log of (R + 1/2) / (S + 1/2), and z = T / sqrt(V).

    With a of w winners and b of l losers having the token in a group of n = w + l: R sums a (l - b) / n, S sums
    b (w - a) / n, T sums a - w m / n for m = a + b, V sums w l m (n - m) / (n^2 (n - 1)).
    """
    r = s = t = v = 0.0
    varied = 0
    for a, b, w, l in strata:  # noqa: E741
        n, m = w + l, a + b
        r += a * (l - b) / n
        s += b * (w - a) / n
        t += a - w * m / n
        v += w * l * m * (n - m) / (n * n * (n - 1))
        varied += m < n
    return _Count(
        winners_with=sum(a for a, *_ in strata),
        winners=winners,
        losers_with=sum(b for _, b, *_ in strata),
        losers=losers,
        varied=varied,
        log_odds=math.log((r + 0.5) / (s + 0.5)),
        z=t / math.sqrt(v) if v > 0 else 0.0,
    )


def _token(token: int, count: _Count, piece: str) -> PriorToken:
    return PriorToken(
        id=token,
        piece=piece,
        sign=1 if count.z > 0 else -1,
        log_odds=round(count.log_odds, 6),
        z=round(count.z, 6),
        winners_with=count.winners_with,
        winners=count.winners,
        losers_with=count.losers_with,
        losers=count.losers,
        groups=count.varied,
    )
