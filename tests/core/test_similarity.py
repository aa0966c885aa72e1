from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import similarity
from core.similarity import cosine, near_duplicates, nearest


def vectors(n: int, d: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "BLOCK_CELLS", 40)
    monkeypatch.setattr(similarity, "BLOCK_ROWS", 7)


def test_cosine_is_the_formula_and_stays_in_range() -> None:
    a, b = vectors(5), vectors(4, seed=1)
    expected = [[x @ y / (np.linalg.norm(x) * np.linalg.norm(y)) for y in b] for x in a]
    assert cosine(a, b) == pytest.approx(np.array(expected), abs=1e-6)
    assert np.abs(cosine(a, 3 * a)).max() <= 1


def test_a_zero_vector_is_like_nothing() -> None:
    zero = np.zeros((1, 8), np.float32)
    assert cosine(zero, np.vstack([zero, vectors(2)])).tolist() == [[0, 0, 0]]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (5, 50, 3), (13, 29, 29), (3, 8, 1), (4, 14, 9)])
def test_nearest_in_blocks_is_the_full_sort(n: int, m: int, k: int) -> None:
    queries, corpus = vectors(n), vectors(m, seed=1)
    rows, scores = nearest(queries, corpus, k)
    full = cosine(queries, corpus)
    assert rows.tolist() == np.argsort(-full, axis=1, kind="stable")[:, :k].tolist()
    assert scores == pytest.approx(np.take_along_axis(full, rows, axis=1), abs=1e-6)


@pytest.mark.usefixtures("small_blocks")
def test_of_equals_the_earlier_row_comes_first() -> None:
    rng = np.random.default_rng(0)
    corpus = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 60)]
    queries = rng.normal(size=(20, 3)).astype(np.float32)
    rows, _ = nearest(queries, corpus, 30)
    assert rows.tolist() == np.argsort(-cosine(queries, corpus), axis=1, kind="stable")[:, :30].tolist()


@pytest.mark.usefixtures("small_blocks")
def test_many_equals_among_wide_blocks_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "BLOCK_ROWS", 97)
    rng = np.random.default_rng(0)
    corpus = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 500)]
    rows, scores = nearest(corpus[:30], corpus, 3)
    full = cosine(corpus[:30], corpus)
    assert rows.tolist() == np.argsort(-full, axis=1, kind="stable")[:, :3].tolist()
    assert scores.tolist() == [[1, 1, 1]] * 30


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 60),
    st.integers(1, 9),
    st.integers(1, 400),
    st.integers(1, 60),
    st.booleans(),
)
def test_blocks_of_any_size_give_what_one_block_gives(
    n: int, m: int, k: int, cells: int, width: int, unit: bool
) -> None:
    queries, corpus = np.sign(vectors(n, 4)), np.sign(vectors(m, 4, seed=1))  # full of equals, and exact
    if unit:
        queries, corpus = queries / 2, corpus / 2
    whole = nearest(queries, corpus, k, unit=unit)
    pairs = list(near_duplicates(corpus, 0.3, unit=unit))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "BLOCK_CELLS", cells)
        patch.setattr(similarity, "BLOCK_ROWS", width)
        rows, scores = nearest(queries, corpus, k, unit=unit)
        assert [(i, j) for i, j, _ in near_duplicates(corpus, 0.3, unit=unit)] == [p[:2] for p in pairs]
    assert scores == pytest.approx(whole[1], abs=1e-6)
    assert rows.tolist() == whole[0].tolist()


def test_unit_vectors_need_not_be_measured() -> None:
    queries, corpus = (
        v / np.linalg.norm(v, axis=1, keepdims=True) for v in (vectors(6), vectors(40, seed=1))
    )
    rows, scores = nearest(queries, corpus, 5, unit=True)
    measured = nearest(3 * queries, corpus * np.arange(1, 41, dtype=np.float32)[:, None], 5)
    assert rows.tolist() == measured[0].tolist()
    assert scores == pytest.approx(measured[1], abs=1e-6)


def test_a_query_of_length_zero_is_like_nothing_but_gets_its_answers() -> None:
    rows, scores = nearest(np.zeros((1, 8), np.float32), vectors(20), 3)
    assert (rows.tolist(), scores.tolist()) == ([[0, 1, 2]], [[0, 0, 0]])


def test_the_matrix_is_never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "BLOCK_CELLS", 1 << 16)
    monkeypatch.setattr(similarity, "BLOCK_ROWS", 1 << 10)
    queries, corpus = vectors(2_000, 4), vectors(4_000, 4, seed=1)
    tracemalloc.start()
    try:
        nearest(queries, corpus, 5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * (2_000 * 4_000) / 8  # an eighth of the whole


def test_asking_for_more_than_there_is_gives_what_there_is() -> None:
    assert nearest(vectors(2), vectors(3), 10)[0].shape == (2, 3)
    assert nearest(vectors(2), vectors(0), 5)[0].shape == (2, 0)
    assert nearest(vectors(0), vectors(3), 2)[1].shape == (0, 2)


@pytest.mark.usefixtures("small_blocks")
def test_near_duplicates_in_blocks_are_all_the_pairs_once_and_in_order() -> None:
    base = vectors(12)
    corpus = np.vstack([base, base + 0.05 * vectors(12, seed=2), vectors(9, seed=3)])
    full = cosine(corpus, corpus)
    expected = [(i, j) for i in range(33) for j in range(i + 1, 33) if full[i, j] >= 0.9]
    found = list(near_duplicates(corpus, 0.9))
    assert len(expected) >= 12
    assert [(i, j) for i, j, _ in found] == expected
    assert [c for *_, c in found] == pytest.approx([full[pair] for pair in expected], abs=1e-6)


def test_few_vectors_have_no_duplicates() -> None:
    assert list(near_duplicates(vectors(0), -1)) == []
    assert list(near_duplicates(vectors(1), -1)) == []


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(0, 2**16))
def test_the_best_match_of_a_row_among_others_is_itself(n: int, seed: int) -> None:
    corpus = vectors(n, seed=seed)
    rows, scores = nearest(corpus, corpus, 1)
    assert rows[:, 0].tolist() == list(range(n))
    assert scores[:, 0] == pytest.approx(np.ones(n), abs=1e-5)
