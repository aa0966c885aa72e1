from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.embedder import MAX_TOKENS, MiniLM, batches
from core.errors import ModelUnavailableError
from core.ports import Embedder


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    """The real one; a machine that cannot have it skips by name, CI fails."""
    embedder = MiniLM()
    try:
        embedder.embed(["."])
    except ModelUnavailableError as e:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"needs the embedding model: {e}")
    return embedder


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(1, 600))
def test_every_text_is_in_one_batch_and_no_batch_is_too_big(lengths: list[int], most: int) -> None:
    groups = batches(lengths, most)
    assert sorted(p for group in groups for p in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[p] for p in group) <= most


def test_no_texts_need_no_model() -> None:
    assert MiniLM().embed([]).shape == (0, 384)


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelUnavailableError, match=r"onnxruntime, which is not installed.*\.\[embedded\]"):
        MiniLM().embed(["a"])


@pytest.mark.model
def test_vectors_are_unit_float32_and_repeatable(minilm: MiniLM) -> None:
    embedder: Embedder = minilm
    texts = ["Read the file first.", "", "日本語 and 🎉", "word " * 1000]
    vectors = embedder.embed(texts)
    assert vectors.shape == (4, embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    assert (vectors == embedder.embed(texts)).all()


@pytest.mark.model
def test_meaning_is_nearer_than_words(minilm: MiniLM) -> None:
    a, b, c = minilm.embed(
        ["The cat sleeps on the sofa.", "A kitten naps on the couch.", "The bank is on fire."]
    )
    assert a @ b > 0.5 > a @ c


@pytest.mark.model
def test_a_vector_does_not_depend_on_its_company(minilm: MiniLM) -> None:
    texts = ["one", "a much longer sentence about calling read_json before anything else", "two " * 90]
    together, alone = minilm.embed(texts), np.vstack([minilm.embed([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-6


@pytest.mark.model
def test_a_text_is_cut_where_the_model_ends(minilm: MiniLM) -> None:
    at_the_end = "word " * MAX_TOKENS
    a, b = minilm.embed([at_the_end, at_the_end + "something else entirely"])
    assert (a == b).all()
