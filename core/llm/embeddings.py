"""An embedding model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core.errors import InputError, ModelUnavailableError
from core.executor import LocalExecutor
from core.llm.budget import Budget
from core.llm.connection import Connect
from core.llm.line import Brought, Line, Terms
from core.llm.pace import Pace
from core.llm.reply import BYTES_PER_TOKEN, UnreadableReplyError
from core.record import canonical_json, content_hash
from core.rollout import Usage
from core.settings import Endpoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAGE = "embedding"
"""What its requests are booked under."""

BATCH_TEXTS = 64
BATCH_BYTES = 128_000
"""Of the texts of one request; a longer text goes alone."""

OWN = frozenset({"input", "encoding_format"})
"""Fields of the request that `Endpoint.extra` may not set, besides those of a chat."""


def space_of(endpoint: Endpoint) -> str:
    """The name under which the vectors of an endpoint are kept: all that they depend on.

    >>> space_of(Endpoint(name="e", base_url="http://127.0.0.1:1/v1", model="bge-small"))
    'bge-small at http://127.0.0.1:1/v1'
    """
    more = f" with {canonical_json(endpoint.extra)}" if endpoint.extra else ""
    return f"{endpoint.model} at {endpoint.base_url}{more}"


def packed(vector: NDArray[np.float32]) -> str:
    """A vector as text, for the ledger; `unpacked` gives its bytes back."""
    return b64encode(vector.astype("<f4").tobytes()).decode()


def unpacked(text: str) -> bytes:
    return b64decode(text)


class OpenAIEmbedder:
    """Implements `core.ports.Embedder` (see `core.llm.line` for what its requests keep to).

    1. Texts go in batches, several at once; a server that takes no such batch is asked in smaller ones.
    2. Every vector that came is in the ledger before anything is returned, in one transaction with what it cost.
    3. A text without a letter is not sent, servers refuse it: its vector is zero, which is like nothing.
    4. A longer text than the endpoint's context is cut: at one byte a token, the only bound that holds for all.
    5. Its calls block, and come one after the other; they may come from inside of an event loop.

    Args:
        endpoint: who is asked.
        connect: its address and key.
        terms: budget, ledger and wishes of the run. The ledger is given the vectors, by the hash of their texts.
        dimension: of the vectors that are kept of this model; None where there are none yet.

    Raises:
        InputError: `endpoint.extra` sets a field that is not its own.
    """

    def __init__(
        self, endpoint: Endpoint, connect: Connect, terms: Terms, dimension: int | None = None
    ) -> None:
        if taken := sorted(OWN & set(endpoint.extra)):
            raise InputError(f"Endpoint {endpoint.name}: extra may not set {', '.join(taken)}.")
        self._endpoint = endpoint
        self._connect = connect
        self._terms = terms
        self._dimension = dimension
        self._pace = Pace(endpoint, terms.clock)
        self._largest = BATCH_TEXTS
        self._line(terms.budget)  # refuses what cannot be sent, before anything is

    @property
    def name(self) -> str:
        return space_of(self._endpoint)

    @property
    def dimension(self) -> int:
        """Numbers in a vector; where no vector is known yet, the endpoint is asked for one.

        Raises:
            ModelUnavailableError, BudgetError, StoppedError: as `embed`.
        """
        if self._dimension is None:
            self.embed(["What is the dimension of a vector?"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), dimension].

        Raises:
            ModelUnavailableError: the endpoint cannot be used, or gave no usable vectors. What came is kept.
            BudgetError: the cap of the run would be passed; likewise.
            StoppedError: somebody wishes that the work stops; likewise.
            InputError: the key's variable is not set, or (TrustError) may not be read.
        """
        import numpy as np

        sent = [i for i, text in enumerate(texts) if text.strip()]
        found = _run(self._all([texts[i] for i in sent])) if sent else []
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for i, vector in zip(sent, found, strict=True):
            vectors[i] = vector
        return vectors

    async def _all(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of texts that can be sent.

        What it takes is counted on a budget of its own, on top of what the run has spent and set aside: the run's
        is of another event loop.
        """
        run = self._terms.budget
        before = run.taken()
        own = Budget(run.max_calls, run.max_tokens, run.max_cost_usd, spent=before)
        line = self._line(own)
        found: dict[int, NDArray[np.float32]] = {}

        async def ask(places: Sequence[int]) -> None:
            found.update(zip(places, await self._ask(line, [texts[i] for i in places]), strict=True))

        try:
            places = _batches([len(text.encode()) for text in texts], self._largest)
            async for _ in LocalExecutor().stream(ask, places, at_once=self._endpoint.concurrency):
                pass
        finally:
            await line.aclose()
            run.add(own.spent - before)
        return [found[i] for i in range(len(texts))]

    async def _ask(self, line: _Line, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        if len(texts) <= self._largest:
            outcome = await line.send(_Batch(self, texts, self._endpoint), STAGE)
            if isinstance(outcome, _Vectors):
                if outcome.trouble:
                    raise ModelUnavailableError(outcome.trouble)
                return list(outcome.rows)
            if outcome.retry or len(texts) == 1:
                raise ModelUnavailableError(outcome.sentence)
        half = len(texts) // 2  # refused: too many at once, or one of them is what it does not take
        self._largest = max(1, min(self._largest, half))
        return [*await self._ask(line, texts[:half]), *await self._ask(line, texts[half:])]

    def _line(self, budget: Budget) -> _Line:
        return _Line(self._endpoint, self._connect, replace(self._terms, budget=budget), self._pace)

    def fits(self, dimension: int) -> bool:
        """Whether vectors of this dimension are of this model; the first ones that come say what it is."""
        if self._dimension is None:
            self._dimension = dimension
        return self._dimension == dimension


class _Line(Line):
    """A line to where embeddings are; its limits for a minute outlive it."""

    path = "embeddings"

    def __init__(self, endpoint: Endpoint, connect: Connect, terms: Terms, pace: Pace) -> None:
        super().__init__(endpoint, connect, terms)
        self._pace = pace


@dataclass(frozen=True)
class _Vectors:
    """What a request brought, or why it cannot be used however often it is made."""

    rows: Sequence[NDArray[np.float32]]
    trouble: str = ""


@dataclass(frozen=True)
class _Batch:
    """The texts of one request; a `core.llm.line.Sending`."""

    owner: OpenAIEmbedder
    texts: Sequence[str]
    endpoint: Endpoint

    @property
    def _sent(self) -> list[str]:
        most = self.endpoint.context_length
        return [text.encode()[:most].decode(errors="ignore") for text in self.texts]

    @property
    def _bytes(self) -> int:
        return sum(min(len(text.encode()), self.endpoint.context_length) for text in self.texts)

    @property
    def content(self) -> bytes:
        body = {"model": self.endpoint.model, "input": self._sent, "encoding_format": "float"}
        more = {k: v for k, v in self.endpoint.extra.items() if v is not None}
        return canonical_json(body | more).encode()

    @property
    def worst(self) -> Usage:
        return self._usage(self._bytes + 8 * len(self.texts))

    @property
    def likely_tokens(self) -> int:
        return -(-self._bytes // BYTES_PER_TOKEN)

    def read(self, raw: bytes, key: str | None, duration_s: float) -> Brought[_Vectors]:
        body = _object(raw)
        rows = _rows(body, len(self.texts))
        used = body.get("usage")
        tokens = used.get("prompt_tokens") if isinstance(used, dict) else None
        usage = self._usage(tokens if type(tokens) is int and tokens >= 0 else self.likely_tokens)
        if not self.owner.fits(len(rows[0])):
            trouble = (
                f"Endpoint {self.endpoint.name} gave vectors of {len(rows[0])} numbers, but those of "
                f"{self.endpoint.model} have {self.owner.dimension}: another model answers under the same name. "
                "Name the endpoint's model anew, and its vectors are kept apart."
            )
            return Brought(_Vectors((), trouble), usage, ())
        kept = [(content_hash(text), packed(row)) for text, row in zip(self.texts, rows, strict=True)]
        return Brought(_Vectors(rows), usage, kept)

    def _usage(self, tokens: int) -> Usage:
        return Usage(calls=1, prompt_tokens=tokens, cost_usd=self.endpoint.cost(tokens, 0))


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableReplyError("with something that is not JSON") from None
    if not isinstance(body, dict):
        raise UnreadableReplyError("with JSON that is not an object")
    return body


def _rows(body: Mapping[str, Any], n: int) -> list[NDArray[np.float32]]:
    """The unit vectors of a reply, in the order of the texts.

    Raises:
        UnreadableReplyError: one is missing, or holds something that is no number.
    """
    import numpy as np

    data = body.get("data")
    if not isinstance(data, list) or len(data) != n or not all(isinstance(one, dict) for one in data):
        raise UnreadableReplyError(f"without the {n} vectors that it was asked for")
    placed = {one.get("index", i): one.get("embedding") for i, one in enumerate(data)}
    if set(placed) != set(range(n)):
        raise UnreadableReplyError("with vectors that it does not number as they were asked for")
    try:
        rows = np.array([placed[i] for i in range(n)], dtype=np.float64)
    except (TypeError, ValueError):
        raise UnreadableReplyError("with vectors that are not lists of as many numbers each") from None
    if rows.ndim != 2 or not rows.shape[1]:
        raise UnreadableReplyError("with vectors that are not lists of numbers")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise UnreadableReplyError("with a vector that holds something that is no number")
    return list((rows / np.where(norms > 0, norms, 1)).astype(np.float32))


def _batches(sizes: Sequence[int], most: int) -> Iterable[list[int]]:
    """Positions in their order, at most so many in a batch and `BATCH_BYTES` of text."""
    batch: list[int] = []
    held = 0
    for position, size in enumerate(sizes):
        if batch and (len(batch) == most or held + size > BATCH_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(position)
        held += size
    if batch:
        yield batch


def _run(work: Coroutine[Any, Any, list[NDArray[np.float32]]]) -> list[NDArray[np.float32]]:
    """Run to the end, in a thread of its own where this one has an event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="winnow-embedding") as pool:
        return pool.submit(asyncio.run, work).result()
