"""Vectors of texts, by text and model; vectors of different models never meet.

1. A model's vectors all have one dimension, which is kept beside its name; others are refused.
2. A vector is asked for by the name of its model: after a change of the model everything is computed anew, and
   going back to the former one costs nothing.
3. A vector that is not a number in all its places is refused: it would be neither near to nor far from anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from core.errors import ModelUnavailableError
from core.record import content_hash
from core.store.database import Database

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from core.ports import Embedder

PORTION = 1024
"""Texts that are embedded before their vectors are stored: a kill loses no more than that."""


class Embeddings:
    """Each text is embedded once in the life of a workspace, and once more by another model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def embed(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Vectors of the texts by one model, shape [len(texts), dimension].

        Raises:
            ModelUnavailableError: the embedder cannot be had, or gives what cannot be kept.
        """
        import numpy as np

        text_of = {content_hash(text): text for text in texts}
        for keys in _portions(self._missing(list(text_of), embedder.name)):
            self._make({key: text_of[key] for key in keys}, embedder)
        vectors = np.zeros((len(texts), embedder.dimension), dtype="<f4")
        for start in range(0, len(texts), PORTION):  # one portion besides the result is held at once
            keys = [content_hash(text) for text in texts[start : start + PORTION]]
            found = self._find(keys, embedder.name)
            gone = {key: text_of[key] for key in keys if key not in found}  # redacted meanwhile
            found |= self._make(gone, embedder)
            blob = b"".join(found[key] for key in keys)
            vectors[start : start + len(keys)] = np.frombuffer(blob, dtype="<f4").reshape(len(keys), -1)
        return vectors

    def missing(self, texts: Sequence[str], model: str) -> int:
        """How many distinct ones of some texts have no vector of a model yet."""
        return len(self._missing([content_hash(text) for text in texts], model))

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, as little-endian 32-bit floats, by the hash of their texts; one that is there stays.

        Raises:
            ModelUnavailableError: they have another dimension than the model's, or hold something that is no number.
        """
        import numpy as np

        if not vectors:
            return
        with self._database.writing():
            size = self.dimension(model) or len(next(iter(vectors.values()))) // 4
            for blob in vectors.values():
                if len(blob) != 4 * size or not size:
                    raise ModelUnavailableError(
                        f"The embedding model {model} gave a vector of {len(blob) // 4} numbers, but its vectors have "
                        f"{size}: it is another model under the same name. Give it another name, and its vectors are "
                        "kept apart."
                    )
                if not np.isfinite(np.frombuffer(blob, dtype="<f4")).all():
                    raise ModelUnavailableError(
                        f"The embedding model {model} gave a vector that holds something that is no number."
                    )
            self._database.execute(
                "INSERT INTO embedding_models VALUES (?, ?) ON CONFLICT DO NOTHING", model, size
            )
            for key, blob in vectors.items():
                self._database.execute(
                    "INSERT INTO embeddings (text_key, model, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    *(key, model, blob),
                )

    def dimension(self, model: str) -> int | None:
        """Numbers in a vector of a model; None where it never gave one."""
        found: int | None = self._database.value(
            "SELECT dimension FROM embedding_models WHERE model = ?", model
        )
        return found

    def models(self) -> dict[str, int]:
        """Dimension of each model that ever gave a vector here, by its name."""
        rows = self._database.rows("SELECT model, dimension FROM embedding_models ORDER BY model")
        return {row["model"]: row["dimension"] for row in rows}

    def _make(self, texts: Mapping[str, str], embedder: Embedder) -> dict[str, bytes]:
        """Embed texts, by their keys, and keep their vectors."""
        if not texts:
            return {}
        vectors = embedder.embed(list(texts.values()))
        made = {key: vector.astype("<f4").tobytes() for key, vector in zip(texts, vectors, strict=True)}
        self.put(embedder.name, made)
        return made

    def _missing(self, keys: Sequence[str], model: str) -> list[str]:
        """Those of the keys that have no vector, each once, in their order."""
        there = {
            row["text_key"]
            for part in _portions(keys)
            for row in self._database.rows(
                "SELECT text_key FROM embeddings WHERE model = ?1"
                " AND text_key IN (SELECT value FROM json_each(?2))",
                *(model, json.dumps(part)),
            )
        }
        return [key for key in dict.fromkeys(keys) if key not in there]

    def _find(self, keys: Sequence[str], model: str) -> dict[str, bytes]:
        rows = self._database.rows(
            "SELECT text_key, vector FROM embeddings WHERE model = ?1"
            " AND text_key IN (SELECT value FROM json_each(?2))",
            *(model, json.dumps(list(dict.fromkeys(keys)))),
        )
        return {row["text_key"]: row["vector"] for row in rows}


def _portions(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), PORTION):
        yield keys[start : start + PORTION]
