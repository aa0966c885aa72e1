"""What a reviewer sees beside a proposal: what is said already, who wants to change the same, whether its base moved.

Reading only, and no model is asked: nearness comes from vectors that are stored, or from shared words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from core.experience import Experience, Proposal, targets_of
from core.extraction.wording import ALIKE, opposed, words_of
from core.library import Library
from core.record import Record, content_hash
from core.review import Decision, Seen, Weighed, stale
from core.store import Store
from core.store.claims import Claim
from core.store.proposals import QuarantinedItem
from core.store.queue import Order, Place, ProposalQueue, Sieve
from core.workspace.nearest import NEAR_COSINE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Claim",
    "Decision",
    "Dot",
    "NearOne",
    "NearOnes",
    "Order",
    "Place",
    "QuarantinedItem",
    "Reviewing",
    "Seen",
    "Sieve",
    "Weighed",
]

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


class Dot(Record):
    """One rollout of a group: where it stands by its reward."""

    group_id: str
    id: str
    reward: float | None
    advantage: float | None
    broke_off: bool


class Reviewing:
    """Reads for the review of one workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queue = ProposalQueue(store)

    def moved(self, proposals: Sequence[Proposal]) -> dict[str, str]:
        """Why each of some proposals no longer fits the newest library; those that fit are not among them."""
        open_ones = [p for p in proposals if p.status in ("proposed", "deferred", "superseded", "approved")]
        now = self.queue.experiences({i for p in open_ones for i in p.base_texts})
        library = Library.of(now.values(), self._store.versions.head())
        return {p.id: why for p in open_ones if (why := stale(p, library))}

    def rivals(self, proposal: Proposal) -> list[Proposal]:
        """Other proposals, undecided or staged, that change the same lessons."""
        return self.queue.rivals(proposal.id, targets_of(proposal.operation))

    def dots(self, group_ids: Sequence[str]) -> dict[str, list[Dot]]:
        """The rollouts of some groups by reward, the best first."""
        found: dict[str, list[Dot]] = {}
        for row in self.queue.rollouts_of(group_ids):
            dot = Dot(**{**row, "broke_off": bool(row["broke_off"])})
            found.setdefault(dot.group_id, []).append(dot)
        return found

    def near(self, text: str, *, without: Collection[str] = (), k: int = 3) -> NearOnes:
        """Live lessons that are nearest to a text; they are the reviewer's to judge, similarity only suggests."""
        return self._by_vectors(text, without, k) or self._by_words(text, without, k)

    def _by_vectors(self, text: str, without: Collection[str], k: int) -> NearOnes | None:
        """None where the text, or the library, has no vectors."""
        head = self._store.versions.head()
        for model in self._store.embeddings.models():
            query = self.queue.vectors([text], model).get(content_hash(text))
            if query is None:
                continue
            ids, vectors = _matrix(self._store, model, head, self.queue.vectors_kept(model))
            if not ids:
                continue
            from core.similarity import nearest

            rows, cosines = nearest(query[None, :], vectors, k + len(without))
            pairs = [(ids[int(r)], float(c)) for r, c in zip(rows[0], cosines[0], strict=True)]
            now = self.queue.experiences([i for i, _ in pairs])
            found = [(now[i], c) for i, c in pairs if i in now and i not in without]
            return NearOnes(found=_near(text, found[:k], NEAR_COSINE), by=model)
        return None

    def _by_words(self, text: str, without: Collection[str], k: int) -> NearOnes:
        own = words_of(text)
        shares = []
        for lesson in self._store.search.like(text, CANDIDATES):
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
