"""Which experiences a library can best do without: four strategies (Agent-GRPO, as in DESIGN 2.7).

1. diversity: k-means on the embeddings with as many clusters as experiences may stay; the most confident of each
   cluster stays.
2. importance: the least confident go; the lowest 20 % where no number is named.
3. temporal: the lowest w_t = exp(-0.05 * age) go, age in epochs since birth.
4. hybrid (recommended): the lowest U = c^1.0 * w_t^0.5 * d_div^0.3 go, d_div = distance to the nearest other embedding.

► Of equal values the less confident goes first, then the one with the later id. A distance is 1 - cosine. U is
taken one by one, d_div being the distance to the nearest that is *left*: else twins would both go, and with them what
they say. Nothing is deleted here: `core.audits` makes proposals of it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never, get_args

from core.experience import Experience
from core.settings import N_MAX
from core.similarity import nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Strategy = Literal["diversity", "importance", "temporal", "hybrid"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
EMBEDDED: frozenset[Strategy] = frozenset({"diversity", "hybrid"})
"""Strategies that need embeddings."""

LOWEST = 0.2
"""Share of the library that `importance` drops where no number is named."""
DECAY = 0.05
"""Of w_t, for each epoch of age."""
CONFIDENCE_POWER, DECAY_POWER, DISTANCE_POWER = 1.0, 0.5, 0.3
"""The exponents of U."""
ROUNDS = 25
"""Of k-means at most; it ends when no experience changes its cluster."""
DIGITS = 5
"""Decimals that values are compared by, so that the last bits of a matrix product cannot reorder them."""


@dataclass(frozen=True)
class Dropped:
    """One experience that a strategy can do without."""

    experience_id: str
    value: float
    """What it was ranked by; lower goes first."""
    why: str
    """The numbers, fit for a sentence: "U = 0.50^1.0 x 0.135^0.5 x 0.120^0.3 = 0.097"."""


def goal(strategy: Strategy, size: int, to: int | None = None, n_max: int = N_MAX) -> int:
    """How many of `size` live experiences stay.

    Args:
        strategy: `importance` without a number drops the lowest 20 %, the others go down to `n_max`.
        size: live experiences.
        to: how many may stay; None takes the strategy's own number, and drops nothing up to `n_max`.
        n_max: the capacity of the library.

    >>> goal("hybrid", 640), goal("importance", 640), goal("importance", 640, to=600), goal("importance", 500)
    (500, 512, 600, 500)
    """
    if to is not None:
        return min(to, size)
    if size <= n_max:
        return size
    return size - int(LOWEST * size) if strategy == "importance" else n_max


def dropped(
    strategy: Strategy,
    experiences: Sequence[Experience],
    vectors: NDArray[np.float32] | None,
    *,
    to: int,
    epoch: int,
    seed: int = 0,
) -> list[Dropped]:
    """What goes so that `to` experiences stay, the lowest value first; nothing where they are no more than that.

    Args:
        strategy: by which rule of this module.
        experiences: the live ones, in any order, which does not matter.
        vectors: their embeddings, shape [len(experiences), d]; needed by the strategies in `EMBEDDED` only.
        to: how many stay.
        epoch: the present one, which age is counted to.
        seed: of k-means.

    Raises:
        ValueError: the strategy needs embeddings, or there is not one for each experience.
    """
    if strategy in EMBEDDED and (vectors is None or len(vectors) != len(experiences)):
        raise ValueError(f"{strategy} needs an embedding of each experience")
    places = sorted(range(len(experiences)), key=lambda i: in_order(experiences[i]))
    own = [experiences[i] for i in places]
    count = len(own) - max(0, to)
    if count <= 0:
        return []
    match strategy:
        case "diversity":
            assert vectors is not None
            return _crowded(own, vectors[places], len(own) - count, seed)
        case "importance":
            return _lowest([_confidence(e, count, len(own)) for e in own], own, count)
        case "temporal":
            return _lowest([_decay(e, epoch) for e in own], own, count)
        case "hybrid":
            assert vectors is not None
            return _least_useful(own, vectors[places], count, epoch)
        case _:
            assert_never(strategy)


def decay(experience: Experience, epoch: int) -> float:
    """w_t = exp(-0.05 * age), age in epochs since birth, never below 0."""
    return math.exp(-DECAY * max(0, epoch - experience.epoch))


def utility(confidence: float, w_t: float, d_div: float) -> float:
    """U = c^1.0 * w_t^0.5 * d_div^0.3.

    >>> round(utility(0.5, decay(Experience(id="E-0001", text="x"), 40), 0.12), 3)
    0.097
    """
    return float(confidence**CONFIDENCE_POWER * w_t**DECAY_POWER * d_div**DISTANCE_POWER)


def in_order(experience: Experience) -> tuple[int, str]:
    """The order of ids: E-10000 comes after E-9999."""
    return len(experience.id), experience.id


def clusters(vectors: NDArray[np.float32], k: int, seed: int = 0) -> NDArray[np.int64]:
    """K-means by cosine: vectors and centres have length 1, so the nearest centre is the most similar one.

    Starts from k-means++ (Arthur and Vassilvitskii 2007). An empty cluster takes the vector that is farthest from its
    own centre, so that there are always k.

    Args:
        vectors: shape [n, d].
        k: in [1, n].
        seed: of the start.

    Returns:
        The cluster of each vector, in [0, k), shape [n].
    """
    import numpy as np

    unit = _unit(np.asarray(vectors, np.float32))
    centres = unit[_starts(unit, k, np.random.default_rng(seed))]
    before = np.full(len(unit), -1)
    for _ in range(ROUNDS):
        found, similar = nearest(unit, centres, 1, unit=True)
        own = _filled(found[:, 0], similar[:, 0], k)
        if np.array_equal(own, before):
            break
        before = own
        by_cluster = np.argsort(own, kind="stable")
        sums = np.add.reduceat(unit[by_cluster], np.searchsorted(own[by_cluster], np.arange(k)), axis=0)
        centres = _unit(sums)
    return before


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit


def _starts(unit: NDArray[np.float32], k: int, rng: np.random.Generator) -> list[int]:
    """K-means++: each further start is drawn with a chance of its squared distance to the nearest one so far."""
    import numpy as np

    chosen = [int(rng.integers(len(unit)))]
    distance = np.full(len(unit), np.inf)
    free = np.ones(len(unit), bool)
    while len(chosen) < k:
        # |x - y|^2 = 2 (1 - cosine) at length 1
        distance = np.minimum(distance, np.maximum(0, 1 - unit @ unit[chosen[-1]]))
        free[chosen[-1]] = False
        chances = np.cumsum(np.where(free, distance, 0))
        if chances[-1] > 0:
            drawn = int(np.searchsorted(chances, rng.random() * chances[-1], side="right"))
            chosen.append(min(drawn, int(np.flatnonzero(chances == chances[-1])[0])))
        else:  # nothing but copies of the starts is left
            chosen.append(int(np.flatnonzero(free)[0]))
    return chosen


def _filled(own: NDArray[np.int64], similar: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    import numpy as np

    own, similar = own.copy(), similar.copy()
    sizes = np.bincount(own, minlength=k)
    for empty in np.flatnonzero(sizes == 0):
        farthest = int(np.argmin(np.where(sizes[own] > 1, similar, np.inf)))
        sizes[own[farthest]] -= 1
        own[farthest], similar[farthest], sizes[empty] = empty, 1, 1
    return own


def _crowded(own: list[Experience], vectors: NDArray[np.float32], k: int, seed: int) -> list[Dropped]:
    if k == 0:
        return _lowest([(e.confidence, "no place is left") for e in own], own, len(own))
    cluster = clusters(vectors, k, seed)
    best: dict[int, int] = {}
    for i, c in enumerate(cluster):  # the first of equals stays: the earliest id
        if c not in best or own[i].confidence > own[best[c]].confidence:
            best[c] = i
    others = [i for i, c in enumerate(cluster) if best[c] != i]

    def told(i: int) -> tuple[float, str]:
        kept, confidence = own[best[cluster[i]]], own[i].confidence
        against = f"confidence {kept.confidence:.2f} against {confidence:.2f}"
        return confidence, f"{kept.id} stands for its cluster ({against})"

    return _lowest([told(i) for i in others], [own[i] for i in others], len(others))


def _confidence(experience: Experience, count: int, size: int) -> tuple[float, str]:
    return (
        experience.confidence,
        f"confidence {experience.confidence:.2f} is among the lowest {count} of {size}",
    )


def _decay(experience: Experience, epoch: int) -> tuple[float, str]:
    w_t = decay(experience, epoch)
    return w_t, f"w_t = exp(-{DECAY} x {max(0, epoch - experience.epoch)}) = {w_t:.3f}"


def _lowest(values: list[tuple[float, str]], own: list[Experience], count: int) -> list[Dropped]:
    order = sorted(range(len(own)), key=lambda i: _rank(values[i][0], own, i))
    return [Dropped(own[i].id, *values[i]) for i in order[:count]]


def _rank(value: float, own: Sequence[Experience], i: int) -> tuple[float, float, int]:
    """Lower goes first; of equals the less confident, then the later id."""
    return round(value, DIGITS), own[i].confidence, -i


def _least_useful(
    own: list[Experience], vectors: NDArray[np.float32], count: int, epoch: int
) -> list[Dropped]:
    """The hybrid, one by one. U only grows while others go, so what was worked out last is a bound from below."""
    left = _Left(vectors)
    weights = [decay(e, epoch) for e in own]

    def worth(i: int) -> float:
        return utility(own[i].confidence, weights[i], left.distance(i))

    queue = [(_rank(worth(i), own, i), i) for i in range(len(own))]
    heapq.heapify(queue)
    found: list[Dropped] = []
    while len(found) < count:
        was, i = heapq.heappop(queue)
        value = worth(i)
        if (now := _rank(value, own, i)) > was:
            heapq.heappush(queue, (now, i))
            continue
        c, w_t, d_div = own[i].confidence, weights[i], left.distance(i)
        powers = f"{c:.2f}^{CONFIDENCE_POWER} x {w_t:.3f}^{DECAY_POWER} x {d_div:.3f}^{DISTANCE_POWER}"
        found.append(Dropped(own[i].id, value, f"U = {powers} = {value:.3f}"))
        left.drop(i)
    return found


class _Left:
    """Distances to the nearest vector that is left; each knows a few neighbours, and looks again when they are gone."""

    KNOWN = 16

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        import numpy as np

        self._vectors = vectors
        self._there = np.ones(len(vectors), bool)
        rows, scores = nearest(vectors, vectors, self.KNOWN + 1)
        self._known = [
            [(int(row), float(score)) for row, score in zip(*pair, strict=True) if row != i]
            for i, pair in enumerate(zip(rows, scores, strict=True))
        ]

    def drop(self, i: int) -> None:
        self._there[i] = False

    def distance(self, i: int) -> float:
        """1 - cosine of the nearest other one that is left, in [0, 2]; 1 where there is none."""
        import numpy as np

        known = self._known[i]
        while known and not self._there[known[0][0]]:
            known.pop(0)
        if not known:
            others = np.flatnonzero(self._there)
            others = others[others != i]
            if not len(others):
                return 1.0
            near, scores = nearest(self._vectors[i : i + 1], self._vectors[others], self.KNOWN)
            known += [(int(others[row]), float(score)) for row, score in zip(near[0], scores[0], strict=True)]
        return round(max(0.0, 1 - known[0][1]), DIGITS)
