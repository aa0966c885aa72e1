"""A chat model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import WinnowError
from core.llm.failure import Failure
from core.llm.line import Brought, Line
from core.llm.reply import Choice, read_reply
from core.llm.request import Request, chat_body
from core.ports import Completion, Sampling
from core.rollout import Message, Usage
from core.settings import Endpoint
from core.trust import HIDDEN

if TYPE_CHECKING:
    from core.llm.sdk import SdkClient


class OpenAIChat:
    """Implements `core.ports.ChatModel`: one stage's view of a line (see `core.llm.line` for what that keeps to).

    1. Replies that were paid for come from the cache; of what came back, everything is stored before it is returned.
    2. Where `endpoint.sends_n`, replicates with consecutive seeds are asked for in one request; of a partial reply
       only what is missing is asked for again, and a server that takes no such `n` is asked in smaller parts.
    3. Usage: the prompt of a request is counted once, with its first reply, and so is the call; tokens of each
       reply as in `core.llm.reply.count_tokens`. Summing the usage of all replies gives what they took (failed
       requests come on top: the ledger has them). A cached reply carries the usage it once had, and
       `cached=True` says that this run did not pay it.
    """

    def __init__(self, line: Line, stage: str) -> None:
        """`stage` is what the requests are booked under."""
        self.line = line
        self.stage = stage

    @property
    def endpoint(self) -> Endpoint:
        return self.line.endpoint

    @property
    def name(self) -> str:
        """Model name, as it is stored with each rollout."""
        return self.endpoint.model

    @property
    def context_length(self) -> int:
        """Tokens of prompt and reply together."""
        return self.endpoint.context_length

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
            sampling: temperature, limits, seed; replicate i is asked with seed + i.
            replicates: distinct numbers, from 0.
            attempt: 0; a higher number asks for fresh replies where the cache already has some.
            timeout_s: of each reply, its retries and waits included; None = as long as the requests may take.

        Returns:
            A completion each, or, in the place of a reply that failed, one sentence that says why.

        Raises:
            ModelUnavailableError: the endpoint cannot be used at all (bad key, unknown model, not reached, or one
                failure after the other).
            BudgetError: the cap of the run would be passed. What came back before is in the cache.
            StoppedError: somebody wishes that the work stops. Nothing new was sent; likewise.
            InputError: the key's variable is not set, or (TrustError) may not be read.
        """
        body = chat_body(self.endpoint, messages, sampling)
        request = Request(self.endpoint, body, seed=sampling.seed, attempt=attempt)
        done: dict[int, Completion | str] = {}
        for replicate in replicates:
            if found := self.line.kept(request.key(replicate)):
                done[replicate] = Completion.model_validate_json(found).model_copy(update={"cached": True})
        await self._ask_all(request, [r for r in dict.fromkeys(replicates) if r not in done], done, timeout_s)
        return [done[r] for r in replicates]

    def sdk_client(self, *, seed: int, replicate: int, attempt: int = 0) -> SdkClient:
        """A client of the OpenAI SDK for one agent rollout, each request of which takes this line.

        Args:
            seed: of the run; the requests of replicate i are sent seed + i.
            replicate: number of the rollout in its group.
            attempt: as in `complete`.
        """
        from core.llm.sdk import SdkClient

        return SdkClient(self.line, self.stage, seed=seed, replicate=replicate, attempt=attempt)

    async def _ask_all(
        self,
        request: Request,
        replicates: Sequence[int],
        done: dict[int, Completion | str],
        timeout_s: float | None,
    ) -> None:
        batches = list(self._batches(request, replicates))
        if len(batches) == 1:
            await self._ask_in_time(request, batches[0], done, timeout_s)
            return
        # All are awaited even when one raises: what the others bring is paid for, and belongs into the cache.
        asked = (self._ask_in_time(request, b, done, timeout_s) for b in batches)
        raised = [e for e in await asyncio.gather(*asked, return_exceptions=True) if e is not None]
        if raised:  # a bug rather than what is expected to go wrong
            raise min(raised, key=lambda e: isinstance(e, WinnowError))

    def _batches(self, request: Request, replicates: Sequence[int]) -> Iterator[list[int]]:
        """Split into the replicates of one request each: a server seeds its n choices consecutively."""
        batch: list[int] = []
        for replicate in replicates:
            follows = batch and (
                not self.endpoint.sends_seed or request.seed(replicate) == request.seed(batch[-1]) + 1
            )
            if batch and not (follows and len(batch) < self.line.largest_n):
                yield batch
                batch = []
            batch.append(replicate)
        if batch:
            yield batch

    async def _ask_in_time(
        self, request: Request, batch: list[int], done: dict[int, Completion | str], timeout_s: float | None
    ) -> None:
        if timeout_s is None:
            await self._ask(request, batch, done)
            return
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as clock:  # it runs from the moment that there is a place
                await self._ask(request, batch, done, lambda: clock.reschedule(loop.time() + timeout_s))
        except TimeoutError:
            within = f"within {timeout_s:g} seconds, retries and waits included"
            for replicate in batch:  # what had come by then is kept
                done.setdefault(replicate, f"Endpoint {self.endpoint.name} gave no reply {within}.")

    async def _ask(
        self,
        request: Request,
        batch: list[int],
        done: dict[int, Completion | str],
        begins: Callable[[], None] | None = None,
    ) -> None:
        outcome = await self.line.send(_Batch(request, batch, self.endpoint), self.stage, begins)
        if not isinstance(outcome, Failure):
            done |= outcome
            if missing := [r for r in batch if r not in outcome]:
                await self._ask_all(request, missing, done, None)  # at least one came, so this ends
        elif outcome.refuses_n and len(batch) > 1:
            self.line.largest_n = min(self.line.largest_n, len(batch) // 2)
            await self._ask_all(request, batch, done, None)
        else:
            done |= dict.fromkeys(batch, outcome.sentence)


@dataclass(frozen=True)
class _Batch:
    """The replicates of one request; a `core.llm.line.Sending`."""

    request: Request
    replicates: Sequence[int]
    endpoint: Endpoint

    @property
    def content(self) -> bytes:
        return self.request.content_for(self.replicates)

    @property
    def worst(self) -> Usage:
        return self.request.worst(len(self.replicates))

    @property
    def likely_tokens(self) -> int:
        return self.request.likely_tokens(len(self.replicates))

    def read(self, raw: bytes, key: str | None, duration_s: float) -> Brought[dict[int, Completion]]:
        request = self.request
        reply = read_reply(raw, len(self.replicates), request.max_tokens, request.prompt_bytes)
        done: dict[int, Completion] = {}
        for position, choice in sorted(reply.choices.items()):
            prompt_tokens = 0 if done else reply.prompt_tokens
            text = _without_key(choice, key)
            done[self.replicates[position]] = Completion(
                text=text,
                tokens=choice.chances if text == choice.text else (),
                finish_reason=choice.finish_reason,
                usage=Usage(
                    calls=0 if done else 1,
                    prompt_tokens=prompt_tokens,
                    completion_tokens=choice.tokens,
                    cost_usd=self.endpoint.cost(prompt_tokens, choice.tokens),
                ),
                duration_s=duration_s,
            )
        first, *others = (c.usage for c in done.values())
        usage = sum(others, first)
        return Brought(done, usage, [(request.key(r), _kept(c)) for r, c in done.items()])


def _kept(completion: Completion) -> str:
    """As JSON, without the field of the few that have it."""
    return completion.model_dump_json(exclude=None if completion.tokens else {"tokens"})


def _without_key(choice: Choice, key: str | None) -> str:
    """A server that repeats the key in its reply must not bring it into the database."""
    return choice.text.replace(key, HIDDEN) if key and len(key) >= 8 else choice.text
