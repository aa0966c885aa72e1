"""Which experiences of a large library are nearest to a text, by the vectors that the workspace keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.experience import Experience
from core.similarity import nearest
from core.store import Store
from core.workspace.models import Models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.llm import Access
    from core.ports import Embedder


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
