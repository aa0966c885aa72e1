"""Where replies are kept and where it is written down what was sent, both in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.rollout import Usage


@dataclass(frozen=True)
class Entry:
    """One request that left this machine; a reply from the cache is none."""

    run_id: str
    """Empty where it was made outside of a run."""
    endpoint: str
    stage: str
    """"rollout", "extraction", "judge", "test"."""
    usage: Usage


Kept = tuple[str, str]
"""A reply: its key (`core.llm.cache_key`), and its value as JSON."""


class Ledger(Protocol):
    """Called from the event loop; the workspace has one in SQLite."""

    def get(self, key: str) -> str | None:
        """The stored reply, or None."""

    def write(self, replies: Sequence[Kept], sent: Sequence[Entry]) -> None:
        """Store replies, and book what was sent, in one transaction: on return a kill can lose neither."""


class Writer:
    """Writes into a ledger: what comes in the same turn of the event loop goes into one transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._replies: list[Kept] = []
        self._sent: list[Entry] = []
        self._waiting: list[asyncio.Future[None]] = []

    def add(self, replies: Sequence[Kept], entry: Entry) -> asyncio.Future[None]:
        """Take one request in; await the result to know that it is stored. It is stored also if nobody awaits it."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self.flush)
        stored = loop.create_future()
        self._replies += replies
        self._sent.append(entry)
        self._waiting.append(stored)
        return stored

    def flush(self) -> None:
        """Write down what was taken in."""
        replies, sent, waiting = self._replies, self._sent, self._waiting
        self._replies, self._sent, self._waiting = [], [], []
        if not waiting:
            return
        error: Exception | None = None
        try:
            self._ledger.write(replies, sent)
        except Exception as e:  # noqa: BLE001  # raised where each of them is awaited
            error = e
        for stored in waiting:
            if stored.done():
                continue  # cancelled while it waited
            if error is None:
                stored.set_result(None)
            else:
                stored.set_exception(error)
