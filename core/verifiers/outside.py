"""What a verifier may reach outside of its own rule: a sandbox, a model, a user's function. By default nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from core.ports import ChatModel, Sandbox

R = TypeVar("R")
P = ParamSpec("P")


class Call(Protocol):
    """Runs a function that blocks without holding up the event loop: `core.ports.Executor.call`."""

    async def __call__(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...


@dataclass(frozen=True)
class Outside:
    """Handed in where verifiers are built. A verifier whose part is missing judges nothing, and says so."""

    sandbox: Sandbox | None = None
    """Runs the code of answers."""
    judge: ChatModel | None = None
    """Is asked for verdicts."""
    load_function: Callable[[str], Callable[..., object]] | None = None
    """Finds a user's function by `module:function`; raises InputError where it may not be used."""
    call: Call = asyncio.to_thread


NOTHING = Outside()
