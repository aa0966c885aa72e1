"""Cosine similarity by brute force, in blocks of bounded memory.

Similarity proposes, it never decides: opposites ("lowercase", "uppercase") reach .96 (DESIGN 5).
Vectors need not be normalised; one of length zero is like nothing, itself included (cosine 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_CELLS = 1 << 22
"""Cells of the largest similarity matrix that is held at once (16 MiB)."""
BLOCK_ROWS = 1 << 14
"""Rows of the corpus that are normalised at once."""


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine of every row of `a` with every row of `b`, in [-1, 1].

    Args:
        a: shape [n, d].
        b: shape [m, d].

    Returns:
        Shape [n, m].
    """
    import numpy as np

    product: NDArray[np.float32] = _unit(a) @ _unit(b).T
    return np.clip(product, np.float32(-1), np.float32(1), out=product)


def nearest(
    queries: NDArray[np.float32], corpus: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k rows of the corpus most like each query, best first; of equals the earlier row comes first.

    Args:
        queries: shape [n, d].
        corpus: shape [m, d].
        k: how many; at most m are there to be had.

    Returns:
        Rows of the corpus, shape [n, min(k, m)], and their cosines, same shape.
    """
    import numpy as np

    k = max(0, min(k, len(corpus)))
    rows = np.zeros((len(queries), k), np.int64)
    scores = np.zeros((len(queries), k), np.float32)
    if k == 0:
        return rows, scores
    step = max(1, BLOCK_CELLS // (min(BLOCK_ROWS, len(corpus)) + k))
    for at in range(0, len(queries), step):
        block = queries[at : at + step]
        best = np.zeros((len(block), 0), np.float32)
        where = np.zeros((len(block), 0), np.int64)
        for start in range(0, len(corpus), BLOCK_ROWS):
            found = cosine(block, corpus[start : start + BLOCK_ROWS])
            positions = np.broadcast_to(np.arange(start, start + found.shape[1]), found.shape)
            best, where = _top(np.hstack([best, found]), np.hstack([where, positions]), k)
        rows[at : at + step], scores[at : at + step] = where, best
    return rows, scores


def near_duplicates(vectors: NDArray[np.float32], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in the order of i, then j.

    An iterator, because a low threshold has n * n / 2 answers.

    Args:
        vectors: shape [n, d].
        threshold: in [-1, 1].
    """
    import numpy as np

    width = min(BLOCK_ROWS, max(1, len(vectors)))
    height = max(1, BLOCK_CELLS // width)
    for top in range(0, len(vectors), height):
        block = vectors[top : top + height]
        found: list[tuple[int, int, float]] = []
        for left in range(top, len(vectors), width):
            similar = cosine(block, vectors[left : left + width])
            for i, j in zip(*np.nonzero(similar >= np.float32(threshold)), strict=True):
                if top + i < left + j:
                    found.append((int(top + i), int(left + j), float(similar[i, j])))
        yield from sorted(found)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    vectors = np.asarray(vectors, np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.zeros_like(vectors)
    np.divide(vectors, norms, out=unit, where=norms > 0)
    return unit


def _top(
    scores: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k best columns of each row, best first, ties by the lower number."""
    import numpy as np

    if scores.shape[1] > k:
        # Everything at least as good as the k-th best is a candidate: a bare argpartition breaks ties at random.
        worst = np.partition(scores, -k, axis=1)[:, -k]
        keep = np.stack([_first(row >= w, row > w, k) for row, w in zip(scores, worst, strict=True)])
        scores, rows = np.take_along_axis(scores, keep, axis=1), np.take_along_axis(rows, keep, axis=1)
    order = np.lexsort((rows, -scores), axis=1)
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _first(candidates: NDArray[np.bool_], better: NDArray[np.bool_], k: int) -> NDArray[np.int64]:
    """Columns of all better ones, then of the earliest among the equals, k together."""
    import numpy as np

    sure = np.flatnonzero(better)
    equal = np.flatnonzero(candidates & ~better)
    return np.concatenate([sure, equal[: k - len(sure)]])
