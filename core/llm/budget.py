"""The cap of a run: calls, tokens and money, none of which is ever passed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from core.errors import BudgetError
from core.rollout import Usage


@dataclass
class Hold:
    """What one request may take, set aside until it is known what it took."""

    worst: Usage
    actual: Usage | None = None

    def settle(self, actual: Usage) -> None:
        """Say what the request took. A hold that is never settled counts in full."""
        self.actual = actual


@dataclass
class Budget:
    """What a run may spend, shared by all its calls; None = no cap.

    Before a request its worst case is set aside; afterwards what it took is counted. A request that would pass a
    cap waits while others, still under way, may turn out cheaper than feared, and is refused when they did not.
    A call is one HTTP request that left this machine, retries included. Replies from the cache cost nothing.
    The caps can be passed only by a server that uses more tokens than `max_tokens` allowed it.
    `hold` belongs to one event loop; `taken` and `add` may be called from any thread.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    """Prompt and completion tokens together."""
    max_cost_usd: float | None = None
    spent: Usage = field(default_factory=Usage)
    """Start a resumed run with what it had spent before."""
    held: Usage = field(default_factory=Usage)
    """Set aside for requests under way."""
    _flying: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def taken(self) -> Usage:
        """What was spent and what is set aside, at one moment."""
        with self._lock:
            return self.spent + self.held

    def add(self, usage: Usage) -> None:
        """Count what was spent beside `hold`, by an embedder in a thread of its own."""
        with self._lock:
            self.spent += usage

    @asynccontextmanager
    async def hold(self, worst: Usage) -> AsyncIterator[Hold]:
        """Set the worst case of one request aside while it runs.

        Raises:
            BudgetError: it does not fit; the request must not be made.
        """
        while not self._set_aside(worst):
            await self._changed.wait()
        hold = Hold(worst)
        try:
            yield hold
        finally:
            with self._lock:
                self._flying -= 1
                # Sums of floats drift: with nothing under way, nothing is held.
                self.held = self.held - worst if self._flying else Usage()
                self.spent += hold.worst if hold.actual is None else hold.actual
            self._changed.set()
            self._changed = asyncio.Event()

    def _set_aside(self, worst: Usage) -> bool:
        """Whether there is room for a request now; then it is set aside.

        Raises:
            BudgetError: there will be none.
        """
        with self._lock:
            if problem := self._problem(self.spent, self.held, worst):
                if not self._flying or self._problem(self.spent, worst):
                    raise BudgetError(problem)
                return False
            self.held += worst
            self._flying += 1
            return True

    def _problem(self, *parts: Usage) -> str:
        """Which cap these together would pass, as a sentence; empty if none."""
        if self.max_calls is not None and sum(p.calls for p in parts) > self.max_calls:
            return f"The cap of {self.max_calls:,} calls is reached: {self.spent.calls:,} were made."
        tokens = sum(p.prompt_tokens + p.completion_tokens for p in parts)
        if self.max_tokens is not None and tokens > self.max_tokens:
            spent = self.spent.prompt_tokens + self.spent.completion_tokens
            return (
                f"The cap of {self.max_tokens:,} tokens could be passed by the next call: "
                f"{spent:,} were used, and with it there could be {tokens:,}."
            )
        cost = sum(p.cost_usd for p in parts)
        if self.max_cost_usd is not None and cost > self.max_cost_usd + 1e-12:
            return (
                f"The cap of ${self.max_cost_usd:,.4f} could be passed by the next call: "
                f"${self.spent.cost_usd:,.4f} were spent, and with it there could be ${cost:,.4f}."
            )
        return ""
