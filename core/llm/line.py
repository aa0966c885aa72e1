"""What all requests of one run to one endpoint share: connections, places, pace, breaker, budget and books."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from core.errors import InputError, ModelUnavailableError, StoppedError
from core.llm import failure
from core.llm.breaker import Breaker
from core.llm.budget import Budget
from core.llm.connection import Connect, Connection
from core.llm.failure import Failure
from core.llm.ledger import Entry, Kept, Ledger, Writer
from core.llm.pace import Clock, CoolDown, Pace, Turn
from core.llm.reply import UnreadableReplyError
from core.llm.request import RESERVED
from core.llm.retry import FIRST_DELAY_S, delay_s
from core.ports import Wishes, go
from core.rollout import Usage
from core.settings import Endpoint

SLICE_S = 0.25
"""Whoever waits looks so often whether it may go earlier, or whether the work is to stop."""

NOTHING = Usage()

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True)
class Terms:
    """On what terms a run sends requests."""

    budget: Budget = field(default_factory=Budget)
    """Without caps, it still counts."""
    ledger: Ledger | None = None
    """None keeps nothing."""
    run_id: str = ""
    """Under which the requests are booked; empty outside of a run."""
    wishes: Wishes = go
    """Asked before anything is sent."""
    rng: random.Random = field(default_factory=random.Random)
    """For the jitter between tries."""
    sleep: Sleep = asyncio.sleep
    clock: Clock = time.monotonic


@dataclass(frozen=True)
class Brought(Generic[T]):
    """What the answer to a request holds."""

    value: T
    usage: Usage
    """Of the whole request."""
    replies: Sequence[Kept]
    """What of it is to be kept."""


class Sending(Protocol[T]):
    """One request, ready to be sent."""

    @property
    def content(self) -> bytes: ...

    @property
    def worst(self) -> Usage:
        """The most that it may take."""

    @property
    def likely_tokens(self) -> int:
        """What it is taken to need of the tokens of a minute."""

    def read(self, raw: bytes, key: str | None, duration_s: float) -> Brought[T]:
        """Read the body of the answer; what it gives is free of the key.

        Raises:
            UnreadableReplyError: it holds nothing that can be used.
        """


class Line:
    """A run's way to one endpoint, used in one event loop.

    1. A failed request is made again up to `endpoint.retries` times (see `core.llm.failure` for which ones).
    2. At most `endpoint.concurrency` requests are under way; a request that waits for its retry keeps its place,
       so that an endpoint in trouble is asked less.
    3. Limits for a minute hold over all requests; where the server is asked too much, all wait together.
    4. Nothing is sent that could pass a cap, nor after somebody wished that the work stops, nor to an endpoint
       that failed too often in a row. What is under way when the work is paused comes home and is stored.
    5. Every request that left this machine is booked, in one transaction with what it brought.
    """

    path = "chat/completions"
    """Of its requests, below the base URL."""

    def __init__(self, endpoint: Endpoint, connect: Connect, terms: Terms) -> None:
        """Nothing is imported, read or connected before the first request.

        Raises:
            InputError: `endpoint.extra` sets a field that is not its own.
        """
        if taken := sorted(RESERVED & set(endpoint.extra)):
            raise InputError(f"Endpoint {endpoint.name}: extra may not set {', '.join(taken)}.")
        self.endpoint = endpoint
        self.terms = terms
        self.largest_n = 10**6 if endpoint.sends_n else 1
        """The largest number of replies that a request may ask for, as far as is known."""
        self._connect = connect
        self._writer = Writer(terms.ledger) if terms.ledger else None
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._pace = Pace(endpoint, terms.clock)
        self._queue = asyncio.Lock()
        self._cool_down = CoolDown(terms.clock)
        self._breaker = Breaker(endpoint.name)
        self._connecting = asyncio.Lock()
        self._connection: Connection | None = None
        self._connections: list[Connection] = []
        self._coming_home: set[asyncio.Task[Any]] = set()

    def kept(self, key: str) -> str | None:
        """A reply that was paid for before."""
        return self.terms.ledger.get(key) if self.terms.ledger else None

    async def send(
        self, sending: Sending[T], stage: str, begins: Callable[[], None] | None = None
    ) -> T | Failure:
        """Make one request, again if need be; what it brings is stored when this returns.

        Args:
            sending: the request.
            stage: under which it is booked.
            begins: called when it has its place: time spent in our own queue is nobody's fault.

        Raises:
            ModelUnavailableError: the endpoint cannot be used at all, or failed too often in a row.
            BudgetError: a cap would be passed.
            StoppedError: somebody wished that the work stops.
            InputError: the key's variable is not set, or (TrustError) may not be read.
        """
        stale: Connection | None = None
        tries = 0
        async with self._slots:
            if begins is not None:
                begins()
            while True:
                self._may_send()
                connection = await self._connected(stale)
                once = self._once(connection, sending, stage)
                outcome = await self._at_home(once)
                if not isinstance(outcome, Failure):
                    return outcome
                if not outcome.retry or tries == self.endpoint.retries:
                    break
                tries += 1
                stale = connection if outcome.reconnect else None
                if not outcome.after_s:  # else all wait, before the next one is sent
                    await self._rest(delay_s(tries, self.terms.rng))
        if outcome.retry:
            self._breaker.failed(outcome.sentence)
        if outcome.fatal:
            raise ModelUnavailableError(outcome.sentence)
        return outcome

    async def aclose(self) -> None:
        """Let come home what is under way, and close the connections."""
        while self._coming_home:
            await asyncio.wait(self._coming_home, timeout=SLICE_S)
            if self.terms.wishes() == "now":
                for task in self._coming_home:
                    task.cancel()
        if self._writer:
            self._writer.flush()
        connections, self._connections, self._connection = self._connections, [], None
        for connection in connections:
            await connection.aclose()

    async def _once(self, connection: Connection, sending: Sending[T], stage: str) -> T | Failure:
        """Send once, within the budget and at the line's pace; what it brings is stored when this returns."""
        took = sending.worst
        async with self.terms.budget.hold(took) as hold:
            hold.settle(NOTHING)
            turn = await self._turn(sending.likely_tokens)
            self._may_send()
            sent_at = self.terms.clock()
            replies: Sequence[Kept] = ()
            try:
                outcome = await self._posted(connection, sending)
                if isinstance(outcome, Brought):
                    took, replies = outcome.usage, outcome.replies
                elif not outcome.billed:
                    took = Usage(calls=1 if outcome.sent else 0)
            finally:  # broken off, too: the server may have worked, and charged, for it
                hold.settle(took)
                stored = self._book(took, replies, stage)
        self._note(outcome, turn, sent_at)
        if stored:
            await stored
        return outcome.value if isinstance(outcome, Brought) else outcome

    async def _posted(self, connection: Connection, sending: Sending[T]) -> Brought[T] | Failure:
        started = time.perf_counter()
        answer = await connection.post(sending.content)
        if isinstance(answer, Failure):
            return answer
        key = connection.address.key
        try:
            return sending.read(answer, key, time.perf_counter() - started)
        except UnreadableReplyError as e:
            return failure.unreadable(self.endpoint, str(e), key)

    def _book(self, took: Usage, replies: Sequence[Kept], stage: str) -> asyncio.Future[None] | None:
        if self._writer is None or not took.calls:
            return None
        return self._writer.add(replies, Entry(self.terms.run_id, self.endpoint.name, stage, took))

    def _note(self, outcome: Brought[T] | Failure, turn: Turn, sent_at: float) -> None:
        """What the line learns from the outcome of a request."""
        if isinstance(outcome, Brought):
            self._breaker.worked()
            self._cool_down.answered()
            self._pace.correct(turn, outcome.usage.prompt_tokens + outcome.usage.completion_tokens)
            return
        if outcome.after_s:
            self._cool_down.named(outcome.after_s)
        elif outcome.crowded:
            self._cool_down.crowded(sent_at)
        if not outcome.billed:
            self._pace.correct(turn, 0)

    async def _turn(self, tokens: int) -> Turn:
        """Wait until a request of so many tokens may go."""
        while True:
            if (left := self._cool_down.left_s()) > 0:
                # All that were turned away together must not come back together, but none of them early.
                await self._rest(left + self.terms.rng.uniform(0, FIRST_DELAY_S))
            elif not self._pace.limited:
                return self._pace.enter(tokens)
            else:
                async with self._queue:  # first come, first served
                    while (wait := self._pace.wait_s(tokens)) > 0:
                        await self._rest(min(max(wait, 0.001), SLICE_S))
                    if self._cool_down.left_s() <= 0:
                        return self._pace.enter(tokens)

    async def _rest(self, seconds: float) -> None:
        """Wait, unless nothing may be sent any more."""
        while seconds > 0:
            part = min(seconds, SLICE_S)
            await self.terms.sleep(part)
            seconds -= part
            self._may_send()

    def _may_send(self) -> None:
        if self.terms.wishes() != "go":
            raise StoppedError("The work was paused: nothing new is sent, and what was finished is kept.")
        self._breaker.check()

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of one try. When its caller is cancelled while the work pauses, it still comes home."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self.terms.wishes() == "pause":
                self._coming_home.add(task)
                task.add_done_callback(self._came_home)
            else:
                task.cancel()
                await asyncio.wait([task])
            raise

    def _came_home(self, task: asyncio.Task[Any]) -> None:
        self._coming_home.discard(task)
        if not task.cancelled():
            task.exception()  # nobody else will ask

    async def _connected(self, stale: Connection | None) -> Connection:
        """The connection; made anew when there is none yet, or when it is the stale one."""
        if self._connection is not None and self._connection is not stale:
            return self._connection
        async with self._connecting:
            if self._connection is None or self._connection is stale:
                address = await self._connect()
                if self._connection is None or address != self._connection.address:
                    self._connection = Connection(address, self.endpoint, self.path)
                    self._connections.append(self._connection)
            return self._connection
