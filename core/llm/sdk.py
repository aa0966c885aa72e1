"""A client of the OpenAI SDK for agents, each request of which is sent on our terms."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2
from openai import AsyncOpenAI

from core.errors import InputError, ModelError, WinnowError
from core.llm.failure import Failure
from core.llm.line import Brought, Line
from core.llm.reply import read_reply, whole
from core.llm.request import Request
from core.record import canonical_json
from core.rollout import Usage
from core.trust import HIDDEN


class SdkClient:
    """What one agent rollout asks its model with; an async context manager.

    Every chat completion asked for by `client` takes the line: budget, pace, retries, breaker and wishes hold, and it
    is booked. An answer is kept whole, tool calls included, by the whole request, the replicate and the attempt: a
    rollout that was killed and says the same again is given the same again, and pays nothing.
    """

    client: AsyncOpenAI
    usage: Usage
    """What its answers took; one from the cache counts with what it took when it was made."""
    error: WinnowError | None
    """What stopped the last request: raise it in place of what the SDK made of it.

    A plain `ModelError` concerns this rollout only; every other one would meet all others as well."""

    def __init__(self, line: Line, stage: str, *, seed: int, replicate: int, attempt: int) -> None:
        self.usage = Usage()
        self.error = None
        self._line = line
        self._stage = stage
        self._seed, self._replicate, self._attempt = seed, replicate, attempt
        self.client = AsyncOpenAI(
            base_url="http://line.invalid",
            api_key="none",  # the line has the real one
            max_retries=0,
            timeout=None,
            http_client=httpx2.AsyncClient(
                transport=_Transport(self), trust_env=False, verify=False, timeout=None
            ),
        )

    async def aclose(self) -> None:
        """Close the client; the line stays open."""
        await self.client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def answer(self, body: dict[str, Any]) -> str:
        """The whole answer to one request, as JSON.

        Raises:
            ModelError: this request failed; or one of those that `Line.send` raises.
            InputError: it asks for what an agent does not need here (a stream, several replies).
        """
        self.error = None
        try:
            return await self._answer(body)
        except WinnowError as e:
            self.error = e
            raise

    async def _answer(self, body: dict[str, Any]) -> str:
        asked = _Whole(self._line, self._request(body), self._replicate)
        text = self._line.kept(asked.key)
        if text is not None:
            self.usage += asked.usage(text.encode())
            return text
        outcome = await self._line.send(asked, self._stage)
        if isinstance(outcome, Failure):
            raise ModelError(outcome.sentence)
        self.usage += asked.usage(outcome.encode())
        return outcome

    def _request(self, body: dict[str, Any]) -> Request:
        if body.get("stream") or body.get("n", 1) not in (1, None):
            raise InputError("An agent asks for one whole reply at a time, not for several or for a stream.")
        endpoint = self._line.endpoint
        kept = {k: v for k, v in body.items() if k not in {"n", "seed", "stream", "stream_options"}}
        kept |= {"model": endpoint.model, **endpoint.extra}
        return Request(endpoint, kept, seed=self._seed, attempt=self._attempt, whole=True)


class _Transport(httpx2.AsyncBaseTransport):
    """Takes the SDK's requests; nothing of them but the body is sent."""

    def __init__(self, owner: SdkClient) -> None:
        self._owner = owner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST" or request.url.path != "/chat/completions":
            self._owner.error = InputError(
                f"An agent may ask for chat completions, not for {request.url.path}."
            )
            raise self._owner.error
        text = await self._owner.answer(json.loads(await request.aread()))
        return httpx2.Response(200, headers={"Content-Type": "application/json"}, content=text.encode())


@dataclass(frozen=True)
class _Whole:
    """A request whose answer is kept whole; a `core.llm.line.Sending`."""

    line: Line
    request: Request
    replicate: int

    @property
    def key(self) -> str:
        return self.request.key(self.replicate)

    @property
    def content(self) -> bytes:
        return self.request.content_for([self.replicate])

    @property
    def worst(self) -> Usage:
        return self.request.worst(1)

    @property
    def likely_tokens(self) -> int:
        return self.request.likely_tokens(1)

    def read(self, raw: bytes, key: str | None, duration_s: float) -> Brought[str]:
        usage = self.usage(raw)  # raises where there is no reply in it
        answer = json.loads(raw)
        # Names and times of the server's own: without them equal histories are equal.
        answer |= {"id": f"chatcmpl-{self.key[:24]}", "created": 0}
        text = whole(canonical_json(answer))
        if key and len(key) >= 8:
            text = text.replace(key, HIDDEN)
        return Brought(text, usage, [(self.key, text)])

    def usage(self, raw: bytes) -> Usage:
        """What an answer took; raises `UnreadableReplyError` where there is no reply in it."""
        reply = read_reply(raw, 1, self.request.max_tokens, self.request.prompt_bytes)
        tokens = sum(choice.tokens for choice in reply.choices.values())
        cost = self.line.endpoint.cost(reply.prompt_tokens, tokens)
        return Usage(calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=tokens, cost_usd=cost)
