"""The time of the event loops of a test's own thread, set forward by the test: what has to be late or in time is so on
the slowest machine, too, and nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass

import pytest


@dataclass
class LoopTime:
    """How far it is ahead."""

    ahead_s: float = 0.0

    def __post_init__(self) -> None:
        self._thread = threading.get_ident()

    def set_forward(self, seconds: float) -> None:
        """By so much."""
        self.ahead_s += seconds

    def now(self, _: object) -> float:
        """The clock of the loops of that thread; those of servers in other threads keep the real time."""
        return time.monotonic() + (self.ahead_s if threading.get_ident() == self._thread else 0)


def loop_time(monkeypatch: pytest.MonkeyPatch) -> LoopTime:
    """Takes hold of the time of the loops; it is real until it is set forward."""
    held = LoopTime()
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda loop: held.now(loop))
    return held
