"""Exact search over embeddings, and a queue of proposals against a library, beside plain numpy and faiss.

Each way runs in fresh processes (`python -m tests.bench.search WAY CORPUS QUERIES REPEATS`), in turn with the others.
Its memory is the peak of the process, less what the peak was when only the vectors were there. The vectors are seeded
noise around 1,000 centres, of length 1, as an embedder gives them. Winnow does not need faiss: `pip install faiss-cpu`
to see it here.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.bench.child import Found, peak_mb
from tests.bench.report import ROOT, Row, at_most

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSION = 384
CENTRES = 1_000
TOP = 5
TURNS = 3
"""Fresh processes of each way; the fastest is given."""
SINGLE_MS = 28.0
"""For one query at 100,000 (DESIGN 5)."""
BLOCKS_MB = 100
"""For the blocks and what is found in them."""

Search = Callable[["NDArray[np.float32]"], "NDArray[np.int64]"]
"""Queries in, rows of the corpus out, shape [n, TOP]."""


def search(quick: bool) -> list[Row]:
    """Top 5 of 100,000 embeddings, and 5,000 proposals against 10,000 experiences."""
    corpus, proposals = (20_000, 1_000) if quick else (100_000, 5_000)
    what = f"exact top {TOP} of {corpus:,} embeddings, one query"
    found = _side_by_side(corpus, 1, 30)
    rows = [at_most(f"{what}: median of 30", found["winnow"]["ms"], SINGLE_MS * corpus / 100_000, "ms", 1)]
    rows += _compared(what, found)
    experiences = 10_000
    what = f"{proposals:,} proposals against {experiences:,} experiences, top {TOP} each"
    found = _side_by_side(experiences, proposals, 3)
    rows.append(Row(f"{what}: wall", f"{found['winnow']['ms']:,.0f} ms"))
    return rows + _compared(what, found)


def _side_by_side(corpus: int, queries: int, repeats: int) -> dict[str, Found]:
    ways = [w for w in WAYS if w != "faiss" or importlib.util.find_spec("faiss")]
    turns = [{way: _run(way, corpus, queries, repeats) for way in ways} for _ in range(TURNS)]
    return {way: min((turn[way] for turn in turns), key=lambda f: float(f["ms"])) for way in ways}


def _compared(what: str, found: dict[str, Found]) -> list[Row]:
    own = found["winnow"]
    rows = [at_most(f"{what}: memory above the vectors", own["mb"], BLOCKS_MB, "MB", 0)]
    for way, name in OTHERS.items():
        if way not in found:
            rows.append(Row(f"{what}: against {name}", "not installed"))
            continue
        other = found[way]
        told = f"{own['ms'] / other['ms']:.2f} x of {other['ms']:,.1f} ms, {other['mb']:,.0f} MB"
        rows.append(Row(f"{what}: against {name}, its memory", told))
        same = sum(len({*a} & {*b}) for a, b in zip(own["rows"], other["rows"], strict=True))
        total = sum(map(len, own["rows"]))
        rows.append(Row(f"{what}: rows that {name} finds, too", f"{same:,} of {total:,}"))
    return rows


def _run(way: str, corpus: int, queries: int, repeats: int) -> Found:
    command = [sys.executable, "-m", "tests.bench.search", way, *map(str, (corpus, queries, repeats))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"searching by {way} failed:\n{done.stderr}")
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


# -- in the process that is measured ----------------------------------------------------------------


def _winnow(corpus: NDArray[np.float32]) -> Search:
    from core.similarity import nearest

    return lambda queries: nearest(queries, corpus, TOP, unit=True)[0]


def _numpy(corpus: NDArray[np.float32]) -> Search:
    import numpy as np

    def find(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        scores = queries @ corpus.T
        best = np.argpartition(scores, -TOP, axis=1)[:, -TOP:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    return find


def _faiss(corpus: NDArray[np.float32]) -> Search:
    import faiss

    index = faiss.IndexFlatIP(DIMENSION)
    index.add(corpus)

    def find(queries: NDArray[np.float32]) -> NDArray[np.int64]:
        rows: NDArray[np.int64] = index.search(queries, TOP)[1]
        return rows

    return find


WAYS: dict[str, Callable[[NDArray[np.float32]], Search]] = {
    "winnow": _winnow,
    "numpy": _numpy,
    "faiss": _faiss,
}
OTHERS = {"numpy": "plain numpy, one argpartition", "faiss": "faiss flat"}


def _vectors(count: int, seed: int) -> NDArray[np.float32]:
    """Made in small parts: what is left over must not count as the memory of the search."""
    import numpy as np

    centres = np.random.default_rng(0).normal(size=(CENTRES, DIMENSION)).astype(np.float32)
    rng = np.random.default_rng(seed)
    vectors = np.empty((count, DIMENSION), np.float32)
    for start in range(0, count, 1_000):
        part = vectors[start : start + 1_000]
        part[:] = centres[rng.integers(0, CENTRES, len(part))]
        part += rng.standard_normal(part.shape, np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def measure(way: str, corpus: int, queries: int, repeats: int) -> Found:
    """Median of the time of a search, once warm; rows that were found; memory."""
    there, asked = _vectors(corpus, 1), _vectors(queries, 2)
    before = peak_mb()
    find = WAYS[way](there)
    rows = find(asked)
    took = []
    for _ in range(repeats):
        started = time.perf_counter()
        find(asked)
        took.append(1000 * (time.perf_counter() - started))
    return {"ms": statistics.median(took), "mb": peak_mb() - before, "rows": rows.tolist()}


def main() -> None:
    way, *numbers = sys.argv[1:]
    arguments: list[Any] = [int(n) for n in numbers]
    sys.stdout.write(json.dumps(measure(way, *arguments)) + "\n")


if __name__ == "__main__":
    main()
