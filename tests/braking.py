"""A stub that slows down, so that work on it cannot end before a test disturbs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.stub_server import Asked, StubServer

SLOW_S = 5.0


@contextmanager
def braked(stub: StubServer, answered: int) -> Iterator[None]:
    """Meanwhile calls take `SLOW_S` each once so many were answered.

    A process that is started in here cannot come to its end in here, however late this one hears of its calls.
    """
    reply = stub.reply

    def braking(asked: Asked) -> str:
        if stub.stats()["answered"] + 1 >= answered:
            stub.latency_s = SLOW_S
        return reply(asked)

    stub.reply = braking
    yield
    stub.reply, stub.latency_s = reply, 0
