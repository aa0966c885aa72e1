"""Work in this process: one event loop for what waits, a few threads for what computes or blocks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
P = ParamSpec("P")


class LocalExecutor:
    """Implements `core.ports.Executor` with asyncio. Used in one event loop."""

    def __init__(self, threads: int | None = None) -> None:
        """Threads are started when the first function is called; None = as many as there are cores, at least 2."""
        self._threads = threads or max(2, os.cpu_count() or 2)
        self._pool: ThreadPoolExecutor | None = None

    async def stream(
        self, work: Callable[[I], Awaitable[R]], items: Iterable[I], *, at_once: int
    ) -> AsyncIterator[R]:
        """Do `work` on each item, at most so many at once, and give the results as they come.

        Where one raises, nothing new starts, what is under way comes home (its results are given first), and then
        the first error is raised. Whoever stops listening, or is cancelled, cancels what is under way.
        """
        if at_once < 1:
            raise ValueError("at_once must be at least 1")
        waiting = iter(items)
        running: set[asyncio.Future[R]] = set()
        failed: BaseException | None = None
        try:
            while True:
                while failed is None and len(running) < at_once:
                    try:
                        item = next(waiting)
                    except StopIteration:
                        break
                    running.add(asyncio.ensure_future(work(item)))
                if not running:
                    break
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    error = asyncio.CancelledError() if task.cancelled() else task.exception()
                    if error is not None:
                        failed = failed or error
                    else:
                        yield task.result()
            if failed is not None:
                raise failed
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function that blocks or computes in one of the threads."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="winnow")
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(function, *args, **kwargs)
        )

    def close(self) -> None:
        """Let go of the threads; what they are at ends first."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
