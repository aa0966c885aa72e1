"""Several things asked for at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from core.errors import WinnowError

T = TypeVar("T")


async def all_home(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results of what is asked for at the same time, in the order of `work`.

    Raises:
        The first error, a bug before what is to be expected, once all have ended: what the others bring is paid for.
    """
    results = await asyncio.gather(*work, return_exceptions=True)
    raised = [r for r in results if isinstance(r, BaseException)]
    for error in sorted(raised, key=lambda e: isinstance(e, WinnowError)):
        raise error
    return [r for r in results if not isinstance(r, BaseException)]
