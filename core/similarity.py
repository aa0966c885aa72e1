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

NEAR_COSINE = 0.60
"""From here on two texts may say the same. Of 20 pairs of paraphrased lessons 15 reach it (half of the words, `ALIKE`,
are shared by none of them), of 760 pairs that say different things 2 do (all-MiniLM-L6-v2; docs/memory.md)."""

BLOCK_CELLS = 1 << 22
"""Cells of the largest similarity matrix that is held at once (16 MiB)."""
BLOCK_ROWS = 1 << 14
"""Rows of the corpus that a block has at least."""


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine of every row of `a` with every row of `b`, in [-1, 1].

    Args:
        a: shape [n, d].
        b: shape [m, d].

    Returns:
        Shape [n, m].
    """
    return _cosines(a, b, unit=False)


def nearest(
    queries: NDArray[np.float32], corpus: NDArray[np.float32], k: int, *, unit: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k rows of the corpus most like each query, best first; of equals the earlier row comes first.

    Args:
        queries: shape [n, d].
        corpus: shape [m, d].
        k: how many; at most m are there to be had.
        unit: whether all rows have length 1 already, as those of an `Embedder` have: it saves reading the
            corpus a second time, half of what a single query takes.

    Returns:
        Rows of the corpus, shape [n, min(k, m)], and their cosines, same shape.
    """
    import numpy as np

    k = max(0, min(k, len(corpus)))
    rows = np.zeros((len(queries), k), np.int64)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    if k == 0 or len(queries) == 0:
        return rows, scores
    width = max(BLOCK_ROWS, BLOCK_CELLS // len(queries))
    for start in range(0, len(corpus), width):
        block = corpus[start : start + width]
        step = max(1, BLOCK_CELLS // len(block))
        for at in range(0, len(queries), step):
            part = slice(at, at + step)
            found = _cosines(queries[part], block, unit)
            rows[part], scores[part] = _best(rows[part], scores[part], found, start)
    return rows, scores


def near_duplicates(
    vectors: NDArray[np.float32], threshold: float, *, unit: bool = False
) -> Iterator[tuple[int, int, float]]:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in the order of i, then j.

    An iterator, because a low threshold has n * n / 2 answers.

    Args:
        vectors: shape [n, d].
        threshold: in [-1, 1].
        unit: whether all rows have length 1 already.
    """
    import numpy as np

    width = min(BLOCK_ROWS, max(1, len(vectors)))
    height = max(1, BLOCK_CELLS // width)
    for top in range(0, len(vectors), height):
        block = vectors[top : top + height]
        found: list[tuple[int, int, float]] = []
        for left in range(top, len(vectors), width):
            similar = _cosines(block, vectors[left : left + width], unit)
            for i, j in zip(*_where(similar >= np.float32(threshold)), strict=True):
                if top + i < left + j:
                    found.append((int(top + i), int(left + j), float(similar[i, j])))
        yield from sorted(found)


def _cosines(a: NDArray[np.float32], b: NDArray[np.float32], unit: bool) -> NDArray[np.float32]:
    """The product is scaled, not the rows: no copy of a corpus is made."""
    import numpy as np

    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    product: NDArray[np.float32] = a @ b.T
    if not unit:
        product *= _inverse_lengths(a)[:, None]
        product *= _inverse_lengths(b)
    return np.clip(product, np.float32(-1), np.float32(1), out=product)


def _inverse_lengths(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / length of each row, 0 for one of length zero."""
    import numpy as np

    lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.divide(np.float32(1), lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _best(
    rows: NDArray[np.int64], scores: NDArray[np.float32], found: NDArray[np.float32], start: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best so far, and those among the columns of `found`, which are the rows from `start` on."""
    import numpy as np

    n, k = rows.shape
    bound = np.maximum(scores[:, -1], _at_least(found, k))
    query, column = _where(found >= bound[:, None])
    which = np.concatenate([np.repeat(np.arange(n), k), query])
    candidates = np.concatenate([rows.ravel(), column + start])
    values = np.concatenate([scores.ravel(), found[query, column]])
    order = np.lexsort((candidates, -values, which))
    first = np.searchsorted(which[order], np.arange(n))
    keep = order[first[:, None] + np.arange(k)]
    return candidates[keep], values[keep]


def _at_least(found: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """A bound that at least k columns of each row reach, and few others do; -inf where there are fewer than k.

    The k-th best of the maxima of groups of columns: folding the matrix is a quarter of the work of a partition.
    """
    import numpy as np

    if found.shape[1] < k:
        return np.full(len(found), -np.inf, np.float32)
    while (half := found.shape[1] // 2) >= 8 * k:
        found = np.maximum(found[:, :half], found[:, half : 2 * half])
    bound: NDArray[np.float32] = np.partition(found, -k, axis=1)[:, -k]
    return bound


def _where(true: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of what is true; many times as fast as `nonzero` where little is."""
    import numpy as np

    return np.divmod(np.flatnonzero(true), max(1, true.shape[1]))
