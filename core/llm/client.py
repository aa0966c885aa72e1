"""A chat model behind any OpenAI-compatible endpoint, with retries, budget and cache in one place."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import InputError, ModelUnavailableError, WinnowError
from core.llm import failure
from core.llm.budget import Budget
from core.llm.cache_key import CallCache, cache_key
from core.llm.failure import Failure
from core.llm.reply import Choice, Reply, UnreadableReplyError, read_reply
from core.llm.retry import delay_s
from core.ports import Completion, Sampling
from core.rollout import Message, Usage
from core.settings import Endpoint
from core.trust import HIDDEN, read_key

if TYPE_CHECKING:
    from openai import AsyncOpenAI

SEEDS = 2**31
"""Seeds are taken modulo this: every server takes a 31-bit number."""

ATTEMPT_STRIDE = 1_000_003
"""How far apart the seeds of two attempts at the same replicate lie."""

OVERHEAD_TOKENS = 64
"""A chat template may add so many tokens to a prompt, and 16 to each message (llama.cpp's default adds 24)."""

RESERVED = frozenset({"messages", "model", "n", "seed", "stream"})
"""Fields of the request that `Endpoint.extra` may not set: replies could no longer be told apart."""

HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "x-stainless-raw-response",  # the SDK finds its own way by it
    }
)
"""All that is sent. The SDK would add facts about this machine, and whatever OPENAI_ORG_ID,
OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS hold, to endpoints that they were not meant for."""


@dataclass(frozen=True)
class Address:
    """Where an endpoint is, and the key that it takes."""

    base_url: str
    key: str | None = field(default=None, repr=False)


Connect = Callable[[], Awaitable[Address]]
"""Tells the address; called before the first request, and again when a connection was lost."""


def fixed_address(endpoint: Endpoint) -> Connect:
    """The `Connect` of an ordinary endpoint: its base URL, and its key from the environment.

    Calling it raises TrustError or InputError where the key may not be read or is not set.
    """

    async def connect() -> Address:
        return Address(endpoint.base_url, read_key(endpoint.key_env) if endpoint.key_env else None)

    return connect


class OpenAIChat:
    """Implements `core.ports.ChatModel`. One object for each endpoint, used in one event loop.

    1. Replies that were paid for come from the cache; of what came back, everything is stored before it is returned.
    2. A failed request is made again up to `endpoint.retries` times (see `core.llm.failure` for which ones).
    3. At most `endpoint.concurrency` requests are under way; a request that waits for its retry keeps its place,
       so that an endpoint in trouble is asked less.
    4. Where `endpoint.sends_n`, replicates with consecutive seeds are asked for in one request; of a partial reply
       only what is missing is asked for again, and a server that takes no such `n` is asked in smaller parts.
    5. Usage: the prompt of a request is counted once, with its first reply, and so is the call; tokens of each
       reply as in `core.llm.reply.count_tokens`. Summing the usage of all replies gives what they took (failed
       requests come on top: `budget.spent` has them). A cached reply carries the usage it once had, and
       `cached=True` says that this run did not pay it.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connect: Connect | None = None,
        cache: CallCache | None = None,
        budget: Budget | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Nothing is imported, read or connected before the first call.

        Args:
            endpoint: which model, and how to ask it.
            connect: for an endpoint whose address changes (the embedded model); None takes `fixed_address`.
            cache: None keeps nothing.
            budget: shared by all calls of a run; None has no cap, but counts.
            rng: for the jitter between tries.
            sleep: waits so many seconds between tries.

        Raises:
            InputError: `endpoint.extra` sets a field that is not its own, or there is no base URL.
        """
        if taken := sorted(RESERVED & set(endpoint.extra)):
            raise InputError(f"Endpoint {endpoint.name}: extra may not set {', '.join(taken)}.")
        if connect is None and not endpoint.base_url:
            raise InputError(f"Endpoint {endpoint.name} has no base URL.")
        self.endpoint = endpoint
        self.budget = Budget() if budget is None else budget
        self._connect = fixed_address(endpoint) if connect is None else connect
        self._cache = cache
        self._rng = random.Random() if rng is None else rng
        self._sleep = sleep
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._connecting = asyncio.Lock()
        self._link: _Link | None = None
        self._links: list[_Link] = []
        self._largest_n = 10**6 if endpoint.sends_n else 1

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
            ModelUnavailableError: the endpoint cannot be used at all (bad key, unknown model, not reached).
            BudgetError: the cap of the run would be passed. What came back before is in the cache.
            InputError: the key's variable is not set, or (TrustError) may not be read.
        """
        request = _Request(self.endpoint, messages, sampling, attempt, timeout_s)
        done: dict[int, Completion | str] = {}
        for replicate in replicates:
            found = self._cache.get(request.key(replicate)) if self._cache is not None else None
            if found is not None:
                done[replicate] = found.model_copy(update={"cached": True})
        done |= await self._ask_all(request, [r for r in dict.fromkeys(replicates) if r not in done])
        return [done[r] for r in replicates]

    async def aclose(self) -> None:
        """Close the connections."""
        links, self._links, self._link = self._links, [], None
        for link in links:
            await link.client.close()

    async def _ask_all(self, request: _Request, replicates: Sequence[int]) -> dict[int, Completion | str]:
        batches = list(self._batches(request, replicates))
        if len(batches) == 1:
            return await self._in_time(request, batches[0])
        # All are awaited even when one raises: what the others bring is paid for, and belongs into the cache.
        results = await asyncio.gather(*(self._in_time(request, b) for b in batches), return_exceptions=True)
        done: dict[int, Completion | str] = {}
        for result in sorted(
            results, key=lambda r: isinstance(r, WinnowError)
        ):  # a bug is raised before the rest
            if isinstance(result, BaseException):
                raise result
            done |= result
        return done

    def _batches(self, request: _Request, replicates: Sequence[int]) -> Iterator[list[int]]:
        """Split into the replicates of one request each: a server seeds its n choices consecutively."""
        batch: list[int] = []
        for replicate in replicates:
            follows = batch and (
                not self.endpoint.sends_seed or request.seed(replicate) == request.seed(batch[-1]) + 1
            )
            if batch and not (follows and len(batch) < self._largest_n):
                yield batch
                batch = []
            batch.append(replicate)
        if batch:
            yield batch

    async def _in_time(self, request: _Request, batch: list[int]) -> dict[int, Completion | str]:
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._ask(request, batch)
        except TimeoutError:
            took = f"within {request.timeout_s:g} seconds, retries and waits included"
            return dict.fromkeys(batch, f"Endpoint {self.endpoint.name} gave no reply {took}.")

    async def _ask(self, request: _Request, batch: list[int]) -> dict[int, Completion | str]:
        async with self._slots:
            outcome = await self._until_answered(request, batch)
        if isinstance(outcome, dict):
            missing = [r for r in batch if r not in outcome]
            # Each round brings at least one reply, so this ends.
            return {**outcome, **(await self._ask_all(request, missing) if missing else {})}
        if outcome.refuses_n and len(batch) > 1:
            self._largest_n = min(self._largest_n, len(batch) // 2)
            return await self._ask_all(request, batch)
        return dict.fromkeys(batch, outcome.sentence)

    async def _until_answered(self, request: _Request, batch: list[int]) -> dict[int, Completion] | Failure:
        """Make one request, again if need be; replies are in the cache when this returns."""
        stale: _Link | None = None
        tries = 0
        while True:
            link = await self._linked(stale)
            outcome = await self._once(link, request, batch)
            if not isinstance(outcome, Failure):
                return outcome
            if not outcome.retry or tries == self.endpoint.retries:
                break
            tries += 1
            stale = link if outcome.reconnect else None
            await self._sleep(delay_s(tries, outcome.after_s, self._rng))
        if outcome.fatal:
            raise ModelUnavailableError(outcome.sentence)
        return outcome

    async def _once(
        self, link: _Link, request: _Request, batch: list[int]
    ) -> dict[int, Completion] | Failure:
        """Make one request within the budget; what it brings is in the cache when this returns."""
        started = time.perf_counter()
        async with self.budget.hold(request.worst(len(batch))) as hold:
            outcome = await self._post(link, request, batch)
            if isinstance(outcome, Failure):
                if not outcome.billed:
                    hold.settle(Usage(calls=1 if outcome.sent else 0))
                return outcome
            replies = self._completions(outcome, batch, link, time.perf_counter() - started)
            hold.settle(sum((c.usage for c in replies.values()), Usage()))
            if self._cache is not None:
                self._cache.put_many([(request.key(r), c) for r, c in replies.items()])
            return replies

    async def _linked(self, stale: _Link | None) -> _Link:
        """The client; connected anew when there is none yet, or when it is the stale one."""
        async with self._connecting:
            if self._link is None or self._link is stale:
                address = await self._connect()
                if self._link is None or address != self._link.address:
                    self._link = _Link(address, self.endpoint)
                    self._links.append(self._link)
            return self._link

    async def _post(self, link: _Link, request: _Request, batch: list[int]) -> Reply | Failure:
        """Send one request. What goes wrong with it is returned, not raised."""
        import openai

        endpoint, key = self.endpoint, link.address.key
        body = request.body_for(batch)
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                response = await link.client.chat.completions.with_raw_response.create(
                    model=endpoint.model, messages=request.body["messages"], extra_body=body
                )
            return read_reply(response.content, len(batch), request.max_tokens, request.prompt_bytes)
        except (TimeoutError, openai.APITimeoutError):
            return failure.timed_out(endpoint)
        except UnreadableReplyError as e:
            return failure.unreadable(endpoint, str(e), key)
        except openai.APIConnectionError as e:
            sent = not type(e.__cause__).__name__.startswith(
                ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
            )
            return failure.no_connection(endpoint, link.address.base_url, sent=sent)
        except openai.APIStatusError as e:
            message, code = _upstream(e.body, e.response.text)
            headers = {k.lower(): v for k, v in e.response.headers.items()}
            return failure.refused(
                endpoint, link.address.base_url, e.status_code, message, code, headers, key, datetime.now(UTC)
            )

    def _completions(
        self, reply: Reply, batch: Sequence[int], link: _Link, duration_s: float
    ) -> dict[int, Completion]:
        done: dict[int, Completion] = {}
        for position, choice in sorted(reply.choices.items()):
            prompt_tokens = 0 if done else reply.prompt_tokens
            done[batch[position]] = Completion(
                text=_without_key(choice, link.address.key),
                finish_reason=choice.finish_reason,
                usage=Usage(
                    calls=0 if done else 1,
                    prompt_tokens=prompt_tokens,
                    completion_tokens=choice.tokens,
                    cost_usd=self.endpoint.cost(prompt_tokens, choice.tokens),
                ),
                duration_s=duration_s,
            )
        return done


class _Request:
    """What is asked, apart from how many replies at a time."""

    def __init__(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        sampling: Sampling,
        attempt: int,
        timeout_s: float | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._endpoint = endpoint
        self._attempt = attempt
        self._first_seed = sampling.seed + attempt * ATTEMPT_STRIDE
        self.body = _body(endpoint, messages, sampling)
        limits = [self.body.get("max_tokens"), self.body.get("max_completion_tokens")]
        self.max_tokens = max((n for n in limits if isinstance(n, int)), default=endpoint.context_length)
        self.prompt_bytes = sum(len(m.content.encode()) for m in messages)
        # No byte-level tokenizer makes more tokens than there are bytes: the only bound that holds for all.
        self._most_prompt_tokens = self.prompt_bytes + 16 * len(messages) + OVERHEAD_TOKENS

    def seed(self, replicate: int) -> int:
        return (self._first_seed + replicate) % SEEDS

    def key(self, replicate: int) -> str:
        return cache_key(self._endpoint, self.body, self.seed(replicate), replicate, self._attempt)

    def body_for(self, batch: Sequence[int]) -> dict[str, Any]:
        body = {k: v for k, v in self.body.items() if k not in RESERVED}
        if len(batch) > 1:
            body["n"] = len(batch)
        if self._endpoint.sends_seed:
            body["seed"] = self.seed(batch[0])
        return body

    def worst(self, n: int) -> Usage:
        """The most that a request for n replies may take."""
        return Usage(
            calls=1,
            prompt_tokens=self._most_prompt_tokens,
            completion_tokens=n * self.max_tokens,
            cost_usd=self._endpoint.cost(self._most_prompt_tokens, n * self.max_tokens),
        )


class _Link:
    """One client of the SDK, bound to one address."""

    def __init__(self, address: Address, endpoint: Endpoint) -> None:
        self.address = address
        self.client = _client(address, endpoint)


def _client(address: Address, endpoint: Endpoint) -> AsyncOpenAI:
    from openai import DEFAULT_CONNECTION_LIMITS, AsyncOpenAI, DefaultAsyncHttpxClient

    async def strip(request: Any) -> None:
        for name in set(request.headers) - HEADERS:
            del request.headers[name]
        if address.key is None:
            request.headers.pop("authorization", None)
        request.headers["user-agent"] = "winnow"

    place = urlsplit(address.base_url)
    loopback = place.hostname in {"127.0.0.1", "::1", "localhost"}
    limits = type(DEFAULT_CONNECTION_LIMITS)(
        max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency
    )
    return AsyncOpenAI(
        base_url=address.base_url,
        api_key=address.key or "none",
        timeout=endpoint.timeout_s,
        max_retries=0,
        # Said here too, lest an Authorization in OPENAI_CUSTOM_HEADERS takes its place.
        default_headers={"Authorization": f"Bearer {address.key}"},
        http_client=DefaultAsyncHttpxClient(
            timeout=endpoint.timeout_s,
            limits=limits,
            event_hooks={"request": [strip]},
            # A redirect would carry the prompt to an address that nobody chose.
            follow_redirects=False,
            trust_env=not loopback,
            # Loading the certificates takes 30 ms, and plain HTTP on this machine has none to check.
            verify=not (loopback and place.scheme == "http"),
        ),
    )


def _body(endpoint: Endpoint, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    """The request body without `n` and `seed`; a null in `endpoint.extra` takes a field out."""
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [m.model_dump(exclude_none=True) for m in messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.json_schema is not None and endpoint.json_schema:
        schema = {"name": "reply", "strict": True, "schema": _schema(sampling.json_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    body |= endpoint.extra
    return {k: v for k, v in body.items() if v is not None}


def _schema(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise InputError(f"The JSON schema of the reply is not JSON: {e}.") from e


def _upstream(body: object, text: str) -> tuple[str, str]:
    """An error body's own words, and its code and type."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        facts = inner if isinstance(inner, Mapping) else {"message": inner}
        message = next(
            (facts[k] for k in ("message", "detail", "error") if isinstance(facts.get(k), str)), text
        )
        return message, " ".join(str(facts[k]) for k in ("code", "type", "status", "param") if facts.get(k))
    return (body if isinstance(body, str) else text), ""


def _without_key(choice: Choice, key: str | None) -> str:
    """A server that repeats the key in its reply must not bring it into the database."""
    return choice.text.replace(key, HIDDEN) if key and len(key) >= 8 else choice.text
