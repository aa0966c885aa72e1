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

    from core.ports import Embedder


class Nearest:
    """The embedder is loaded when the first question comes."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models
        self._embedder: Embedder | None = None

    def __call__(self, query: str, experiences: Sequence[Experience], k: int) -> list[Experience]:
        """The k experiences that are most similar to the query, the best first.

        Raises:
            ModelUnavailableError: the embedder cannot be had.
        """
        places, _ = nearest(self.embed([query]), self.embed([e.text for e in experiences]), k)
        return [experiences[i] for i in places[0]]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), dimension]; each text is embedded once in the life of a workspace."""
        if self._embedder is None:
            self._embedder = self._models.embedder()
        return self._store.embeddings.embed(texts, self._embedder)
