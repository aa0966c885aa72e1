"""What the library says already that is near to a text: one way for all who decide on a proposal.

Reading only, and no model is asked: nearness comes from vectors that are stored, or from shared words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from core.experience import Experience
from core.extraction.wording import ALIKE, opposed, words_of
from core.record import Record, content_hash
from core.similarity import NEAR_COSINE
from core.store import Store
from core.store.queue import ProposalQueue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CANDIDATES = 40
"""Lessons that share the most telling words, which are compared whole where there are no vectors."""


class NearOne(Record):
    """A live lesson that is near to a text."""

    experience: Experience
    similarity: float
    """Cosine, or the share of common words."""
    alike: bool
    """Whether the two may say the same."""
    opposed: bool
    """Whether they surely say opposite things."""


class NearOnes(Record):
    """The nearest first."""

    found: tuple[NearOne, ...] = ()
    by: str = "words"
    """The model whose stored vectors were compared, or "words"."""


def near(store: Store, text: str, *, without: Collection[str] = (), k: int = 3) -> NearOnes:
    """Live lessons that are nearest to a text; they are the reviewer's to judge, similarity only suggests."""
    return _by_vectors(store, text, without, k) or _by_words(store, text, without, k)


def _by_vectors(store: Store, text: str, without: Collection[str], k: int) -> NearOnes | None:
    """None where the text, or the library, has no vectors."""
    head, queue = store.versions.head(), ProposalQueue(store)
    for model in store.embeddings.models():
        query = queue.vectors([text], model).get(content_hash(text))
        if query is None:
            continue
        ids, vectors = _matrix(store, model, head, queue.vectors_kept(model))
        if not ids:
            continue
        from core.similarity import nearest

        rows, cosines = nearest(query[None, :], vectors, k + len(without))
        pairs = [(ids[int(r)], float(c)) for r, c in zip(rows[0], cosines[0], strict=True)]
        now = queue.experiences([i for i, _ in pairs])
        found = [(now[i], c) for i, c in pairs if i in now and i not in without]
        return NearOnes(found=_near(text, found[:k], NEAR_COSINE), by=model)
    return None


def _by_words(store: Store, text: str, without: Collection[str], k: int) -> NearOnes:
    own = words_of(text)
    shares = []
    for lesson in store.search.like(text, CANDIDATES):
        words = words_of(lesson.text)
        if lesson.id not in without and own | words:
            shares.append((lesson, len(own & words) / len(own | words)))
    shares.sort(key=lambda pair: (-pair[1], pair[0].id))
    return NearOnes(found=_near(text, shares[:k], ALIKE))


def _near(text: str, pairs: Sequence[tuple[Experience, float]], least: float) -> tuple[NearOne, ...]:
    return tuple(
        NearOne(
            experience=lesson,
            similarity=round(similarity, 3),
            alike=similarity >= least,
            opposed=opposed(text, lesson.text),
        )
        for lesson, similarity in pairs
    )


@lru_cache(maxsize=2)
def _matrix(store: Store, model: str, head: int, _kept: int) -> tuple[list[str], NDArray[np.float32]]:
    """Ids and vectors of the live lessons of a version that have one; made anew when there are more vectors."""
    import numpy as np

    texts = ProposalQueue(store).live_texts()
    vectors = ProposalQueue(store).vectors(list(texts.values()), model)
    there = [(i, vectors[key]) for i, text in texts.items() if (key := content_hash(text)) in vectors]
    if not there:
        return [], np.zeros((0, 1), np.float32)
    return [i for i, _ in there], np.stack([vector for _, vector in there])
