"""Every plug point, as a Protocol. Built-in ones are listed in dictionaries beside their code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from core.record import Record
from core.rollout import Message, Score, Task, Trajectory, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total); total 0 = unknown. Never raises, never prints to standard output."""


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` for callers that show none."""


class Sampling(Record):
    """How a model is asked: everything of a request but the messages."""

    temperature: float = 0.7
    top_p: float = 0.95
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int = 0
    """Replicate i is asked with seed + i."""
    json_schema: str | None = None
    """A JSON Schema (as JSON text) that the reply must follow, where the endpoint can enforce one."""


class Completion(Record):
    """One reply."""

    text: str
    finish_reason: str | None = None
    usage: Usage = Usage()
    cached: bool = False
    """True when no call was made: the reply is one that was paid for before."""
    duration_s: float | None = None


class ChatModel(Protocol):
    """A model behind an endpoint, with retries, budget and cache already in place."""

    @property
    def name(self) -> str:
        """Model name, as it is stored with each rollout."""

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together."""

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, replicates: Sequence[int] = (0,)
    ) -> list[Completion | str]:
        """Ask for one reply for each replicate number, in that order.

        Returns:
            A completion each, or, in the place of a reply that failed, one sentence that says why.

        Raises:
            ModelUnavailableError: the endpoint cannot be used at all (bad key, unknown model).
            BudgetError: the cap of the run would be passed.
        """


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Model name; vectors of different names are never compared."""

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape [len(texts), dimension]."""


class Verifier(Protocol):
    """Scores one attempt at one task."""

    def score(self, task: Task, trajectory: Trajectory) -> Score:
        """Never raises for an attempt it cannot judge: the score's value is None, with the reason."""
