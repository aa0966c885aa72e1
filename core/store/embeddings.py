"""Vectors of texts, by text and model; vectors of different models are never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.record import content_hash
from core.store.database import Database

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.ports import Embedder


class Embeddings:
    """Vectors by text and model; vectors of different models are never mixed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def embed(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Vectors of the texts, computed once each, shape [len(texts), dimension]."""
        import numpy as np

        keys = [content_hash(text) for text in texts]
        found = {key: blob for key in set(keys) if (blob := self._find(key, embedder.name)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            vectors = embedder.embed(list(missing.values()))
            found |= {
                key: vector.astype("<f4").tobytes() for key, vector in zip(missing, vectors, strict=True)
            }
            with self._database.writing():
                for key in missing:
                    self._database.execute(
                        "INSERT INTO embeddings VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                        *(key, embedder.name, found[key]),
                    )
        if not texts:
            return np.zeros((0, embedder.dimension), dtype=np.float32)
        return np.stack([np.frombuffer(found[key], dtype="<f4") for key in keys])

    def _find(self, key: str, model: str) -> bytes | None:
        found: bytes | None = self._database.value(
            "SELECT vector FROM embeddings WHERE text_key = ? AND model = ?", key, model
        )
        return found
