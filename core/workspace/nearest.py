"""Which texts are near to which, by the vectors that the workspace keeps; by shared words where there is no embedder.

One way for all who ask whether something is said already: consolidation, lessons by hand, imports. Similarity only
suggests (DESIGN 2.6.2).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from core.embedder import MiniLM
from core.errors import InputError, ModelUnavailableError
from core.experience import Experience
from core.extraction.wording import ALIKE, words_of
from core.similarity import NEAR_COSINE, nearest
from core.store import Store
from core.workspace.models import Models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.llm import Access
    from core.ports import Embedder

MOST_NEW = 1_000
"""Texts without a vector that are embedded on the way; more take minutes, and words have to do."""

ALIKE_SHOWN = 8
"""Of a draft, so many that may say the same are shown to the model; of equal drafts, one is the draft itself."""

COMMON = 400
"""A word in more texts than this tells nothing about which of them are near."""
TRIED = 50
"""Texts that share the most of the rarer words, which are compared whole."""


class Near(NamedTuple):
    """A text that is near to another one."""

    place: int
    """In the list that was searched."""
    similarity: float
    """Cosine in [-1, 1], or the share of common words in [0, 1]."""


@dataclass(frozen=True)
class Compared:
    """What is near to each of some texts, the nearest first."""

    near: Sequence[Sequence[Near]]
    by: str
    """The model whose vectors were compared, or "words"."""
    least: float
    """From this similarity on, two texts may say the same."""
    note: str = ""
    """Why words were compared; empty where vectors were."""

    def alike(self) -> list[list[Near]]:
        """Only those that may say the same."""
        return [[one for one in found if one.similarity >= self.least] for found in self.near]


class Comparing:
    """Compares many texts with many."""

    def __init__(self, store: Store, embedder: Callable[[], Embedder]) -> None:
        """The embedder is made for each comparison: the role may be given to another one meanwhile."""
        self._store = store
        self._embedder = embedder

    def __call__(self, texts: Sequence[str], among: Sequence[str], k: int) -> Compared:
        """The k texts of `among` that are nearest to each text; nothing is fetched for it.

        By vectors, it is one matrix product in blocks (`core.similarity.nearest`): the memory is that of the vectors
        and 16 MiB. By words, fewer than k are found where fewer share a rarer word.

        Raises:
            BudgetError, StoppedError: of an endpoint with caps.
        """
        if not texts or not among:
            return Compared([()] * len(texts), "", NEAR_COSINE)
        try:
            embedder = self._embedder()
            if why := self._unfit(embedder, [*texts, *among]):
                return _by_words(texts, among, k, why)
            queries = self._store.embeddings.embed(texts, embedder)
            corpus = self._store.embeddings.embed(among, embedder)
        except (ModelUnavailableError, InputError) as e:
            return _by_words(texts, among, k, str(e))
        places, cosines = nearest(queries, corpus, k, unit=True)
        near = [
            [Near(int(place), float(cosine)) for place, cosine in zip(*pair, strict=True)]
            for pair in zip(places, cosines, strict=True)
        ]
        return Compared(near, embedder.name, NEAR_COSINE)

    def alike(self, texts: Sequence[str], others: Sequence[str]) -> tuple[list[list[int]], str]:
        """Places of those of the others that may say the same as each text, and why words were compared.

        A `core.extraction.near_duplicates.Near`; at most `ALIKE_SHOWN` of each.

        Raises:
            BudgetError, StoppedError: of an endpoint with caps.
        """
        found = self(texts, others, ALIKE_SHOWN)
        return [[one.place for one in near] for near in found.alike()], found.note

    def _unfit(self, embedder: Embedder, texts: Sequence[str]) -> str:
        """Why an embedder is not asked now; empty where it is."""
        if isinstance(embedder, MiniLM) and not embedder.at_hand:
            return "The embedding model is not on this machine yet: `winnow audit redundant` fetches it."
        new = self._store.embeddings.missing(texts, embedder.name)
        if new > MOST_NEW:
            return f"{new:,} texts have no vector yet, and making them would take minutes."
        return ""


def _by_words(texts: Sequence[str], among: Sequence[str], k: int, why: str) -> Compared:
    """Texts that share the most words, found by the rarer of those: no pass over all pairs."""
    words = [words_of(text) for text in among]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for i, own in enumerate(words):
        for word in own:
            places[word].append(i)

    def near(text: str) -> list[Near]:
        asked = words_of(text)
        rare = (places[w] for w in asked if w in places)
        shared = Counter(i for found in rare if len(found) <= COMMON for i in found)
        shares = [(len(asked & words[i]) / len(asked | words[i]), i) for i, _ in shared.most_common(TRIED)]
        best = sorted((-share, i) for share, i in shares)[:k]
        return [Near(i, -share) for share, i in best]

    return Compared([near(text) for text in texts], "words", ALIKE, f"Compared by words. {why}")


class Nearest:
    """Compares texts by the vectors of one embedder, which is made when the first question comes.

    It stays with that one: whoever is given the role "embedding" meanwhile, its vectors are never compared with those
    of another model.
    """

    def __init__(self, store: Store, models: Models, access: Access | None = None) -> None:
        """`access` is that of the run that asks: what is sent counts against its caps."""
        self._store = store
        self._models = models
        self._access = access
        self._embedder: Embedder | None = None
        self._library: tuple[Sequence[str], NDArray[np.float32]] | None = None

    def __call__(self, query: str, experiences: Sequence[Experience], k: int) -> list[Experience]:
        """The k experiences that are most similar to the query, the best first.

        Raises:
            ModelUnavailableError: the embedder cannot be had.
        """
        places, _ = nearest(self.embed([query]), self.embed([e.text for e in experiences]), k)
        return [experiences[i] for i in places[0]]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), dimension]; each text is embedded once in the life of a workspace.

        The last long list is remembered: a run asks for the same library with each of its tasks.

        Raises:
            ModelUnavailableError: the embedder cannot be had.
        """
        if self._library is not None and self._library[0] == texts:
            return self._library[1]
        if self._embedder is None:
            self._embedder = self._models.embedder(self._access)
        vectors = self._store.embeddings.embed(texts, self._embedder)
        if len(texts) > 1:
            self._library = (list(texts), vectors)
        return vectors
