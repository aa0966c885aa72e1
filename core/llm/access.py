"""One run's way to its endpoints."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from core.llm.chat import OpenAIChat
from core.llm.connection import Connect, fixed_address
from core.llm.line import Line, Terms
from core.settings import Endpoint


class Access:
    """Gives chat models; all that ask the same endpoint share one line. An async context manager, for one event loop.

    Args:
        find: gives an endpoint by its name.
        terms: budget, books and wishes of the run.
        connect: gives the `Connect` of an endpoint.
    """

    def __init__(
        self,
        find: Callable[[str], Endpoint],
        terms: Terms,
        connect: Callable[[Endpoint], Connect] = fixed_address,
    ) -> None:
        self.terms = terms
        self._find = find
        self._connect = connect
        self._lines: dict[str, Line] = {}

    def chat(self, name: str, stage: str) -> OpenAIChat:
        """A chat model of an endpoint, whose requests are booked under a stage ("rollout", "extraction", "judge").

        Raises:
            NotFoundError: there is no such endpoint.
            InputError: it has no base URL, or sets fields that are not its own.
        """
        if name not in self._lines:
            endpoint = self._find(name)
            self._lines[name] = Line(endpoint, self._connect(endpoint), self.terms)
        return OpenAIChat(self._lines[name], stage)

    async def aclose(self) -> None:
        """Let come home what is under way, and close the connections."""
        for line in self._lines.values():
            await line.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
