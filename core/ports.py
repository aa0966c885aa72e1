"""Every plug point, as a Protocol. Built-in ones are listed in dictionaries beside their code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypeVar

from pydantic import Field

from core.record import Record
from core.rollout import Message, Score, Task, Trajectory, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total); total 0 = unknown. Never raises, never prints to standard output."""


def silent(what: str, done: int, total: int) -> None:
    """A `Progress` for callers that show none."""


Wish = Literal["go", "pause", "now"]
"""What a person wants of work that is under way: "pause" lets what is in flight come home and starts nothing new,
"now" drops it."""

Wishes = Callable[[], Wish]
"""Asked before anything new starts; cheap, and callable from every thread."""


def go() -> Wish:
    """`Wishes` of work that nobody stops."""
    return "go"


I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
P = ParamSpec("P")


class Executor(Protocol):
    """Where work is done: in this process, or, later, on other machines (DESIGN section 4).

    `stream` keeps its coroutines beside whoever calls it, who holds the database; `call` may take its function
    elsewhere, so the function, its arguments and its result must be picklable and hold no database handle.
    """

    def stream(
        self, work: Callable[[I], Awaitable[R]], items: Iterable[I], *, at_once: int
    ) -> AsyncIterator[R]:
        """Do `work` on each item, at most so many at once, and give the results as they come.

        Items are taken only as room becomes free, so memory stays flat. Where one raises, nothing new starts, what
        is under way comes home (its results are given first), and then the error is raised.
        """

    async def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function that blocks or computes without holding up the event loop."""


class Limits(Record):
    """What a program may take."""

    time_s: float = Field(default=10.0, gt=0)
    """Wall clock."""
    memory_mb: int = Field(default=512, ge=32)
    output_bytes: int = Field(default=100_000, ge=1)
    """Of standard output and standard error, each."""
    files_mb: int = Field(default=16, ge=0)
    """Largest file that it may write."""


class Program(Record):
    """Python code that a task or an agent brings."""

    code: str
    stdin: str = ""
    folder: str | None = None
    """Working folder, the only place that it may write to; None = a fresh one, which is removed afterwards."""
    limits: Limits = Limits()


class Ran(Record):
    """What came of a program."""

    ended: Literal["done", "error", "time", "memory", "output"]
    """By itself with exit code 0, by itself with another one, or stopped at a limit."""
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration_s: float = 0.0


class Sandbox(Protocol):
    """Runs untrusted code, confined: no network, no file outside its folder, bounded time, memory and output."""

    @property
    def confines(self) -> str:
        """What is confined on this machine, and how, in one sentence."""

    def run(self, program: Program) -> Ran:
        """Run a program to its end; blocks.

        Raises:
            SandboxError: code cannot be confined here, or the local configuration does not allow it. Nothing ran.
        """


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
    logit_bias: dict[int, float] = Field(default_factory=dict)
    """Added to the logits, by token id (`core.prior`); the endpoint's limits hold."""
    logprobs: bool = False
    """Whether the log-probability of each token is asked for."""
    forced: tuple[int, ...] = ()
    """Token ids that the reply must be made of, so that a given text is scored (DESIGN 2.9); () = free."""


class TokenChance(Record):
    """One token of a reply, and how likely it was."""

    id: int
    logprob: float
    """Raw: at temperature 1, before top_p, top_k, min_p, a logit_bias or a grammar take effect; in nats."""


class Completion(Record):
    """One reply."""

    text: str
    finish_reason: str | None = None
    usage: Usage = Usage()
    cached: bool = False
    """True when no call was made: the reply is one that was paid for before."""
    duration_s: float | None = None
    tokens: tuple[TokenChance, ...] = ()
    """Where log-probabilities were asked for: of each token that the server tells of, the end of the reply included.
    llama.cpp leaves out a token that is only a part of a character."""


class ChatModel(Protocol):
    """A model behind an endpoint, with retries, budget and cache already in place."""

    @property
    def name(self) -> str:
        """Model name, as it is stored with each rollout."""

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together."""

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        replicates: Sequence[int] = (0,),
        *,
        attempt: int = 0,
        timeout_s: float | None = None,
    ) -> list[Completion | str]:
        """Ask for one reply for each replicate number, in that order.

        Args:
            messages: the prompt.
            sampling: temperature, limits, seed.
            replicates: distinct numbers, from 0.
            attempt: a higher number asks for fresh replies where the cache already has some.
            timeout_s: of each reply, its retries and waits included; None = as long as the requests may take.

        Returns:
            A completion each, or, in the place of a reply that failed, one sentence that says why.

        Raises:
            ModelUnavailableError: the endpoint cannot be used at all (bad key, unknown model).
            BudgetError: the cap of the run would be passed.
            StoppedError: somebody wants the work to stop; nothing new was sent.
        """


class Tokenizer(Protocol):
    """Turns texts into the token ids of one model."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def sha256(self) -> str:
        """Of the vocabulary (`core.prior.vocabulary_hash`): ids of tokenizers with another one mean other tokens."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, without tokens that mark its beginning or end.

        Raises:
            ModelUnavailableError: who does it cannot be reached.
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens; U+FFFD stands for parts of a character."""


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

    async def score(self, task: Task, trajectory: Trajectory) -> Score:
        """Never raises for an attempt it cannot judge: the score's value is None, with the reason."""
