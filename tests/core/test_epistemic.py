"""Diversity and novelty against loops over single pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from core.epistemic import halves

Vectors = NDArray[np.float32]
VALUES = st.floats(-1, 1, width=32).map(lambda v: round(v, 3))


def vectors(rows: st.SearchStrategy[int]) -> st.SearchStrategy[Vectors]:
    return rows.flatmap(lambda n: arrays(np.float32, (n, 5), elements=VALUES))


def alike(a: Vectors, b: Vectors) -> float:
    """Cosine of two vectors, clipped at 0; a vector of length zero is like nothing."""
    length = math.sqrt(sum(float(x) ** 2 for x in a)) * math.sqrt(sum(float(y) ** 2 for y in b))
    return max(0.0, sum(float(x) * float(y) for x, y in zip(a, b, strict=True)) / length) if length else 0.0


@given(vectors(st.integers(1, 5)), vectors(st.integers(0, 4)))
def test_the_halves_are_the_formulas_pair_by_pair(answers: Vectors, earlier: Vectors) -> None:
    for i, found in enumerate(halves(answers, earlier)):
        others = [1 - alike(answers[i], answers[j]) for j in range(len(answers)) if j != i]
        if others:
            assert found.diversity == pytest.approx(sum(others) / len(others), abs=2e-6)
        else:
            assert found.diversity is None
        novelty = 1 - max((alike(answers[i], e) for e in earlier), default=0.0)
        assert found.novelty == pytest.approx(novelty, abs=2e-6)
        assert 0 <= found.novelty <= 1
        assert found.diversity is None or 0 <= found.diversity <= 1


@given(vectors(st.integers(2, 5)), vectors(st.integers(0, 4)), st.randoms())
def test_in_another_order_every_answer_keeps_its_halves(
    answers: Vectors, earlier: Vectors, rng: object
) -> None:
    order = list(range(len(answers)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    found, moved = halves(answers, earlier), halves(answers[order], earlier[::-1])
    for i, at in enumerate(order):
        assert moved[i].diversity == pytest.approx(found[at].diversity, abs=2e-6)
        assert moved[i].novelty == pytest.approx(found[at].novelty, abs=2e-6)


def test_equal_answers_bring_exactly_nothing_and_opposite_ones_no_more_than_unrelated_ones() -> None:
    one = np.random.default_rng(0).normal(size=(1, 384)).astype(np.float32)
    assert halves(np.repeat(one, 3, axis=0), one) == [(0.0, 0.0)] * 3
    assert halves(np.concatenate([one, -one]), -one)[0] == (1.0, 1.0)


def test_a_first_answer_is_new() -> None:
    assert halves(np.eye(1, 4, dtype=np.float32), np.zeros((0, 4), np.float32)) == [(None, 1.0)]
