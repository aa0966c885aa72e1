"""Tries an endpoint: is it there, does its model answer, what can it do?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from core.errors import WinnowError
from core.llm.access import Access
from core.llm.budget import Budget
from core.llm.connection import Connect, fixed_address
from core.llm.ledger import Entry, Kept, Ledger
from core.llm.line import Terms
from core.ports import Completion, Sampling
from core.record import Record
from core.rollout import Message
from core.settings import Endpoint

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
)


class Probe(Record):
    """What a trial of an endpoint showed. None = not tried, or not to be told."""

    endpoint: str
    model: str
    reachable: bool = False
    """A connection came about."""
    answered: bool = False
    """The model gave a reply."""
    latency_s: float | None = None
    """Seconds for one reply of a few tokens."""
    sends_n: bool | None = None
    """One request brings several replies."""
    sends_seed: bool | None = None
    """The same seed brought the same reply twice."""
    json_schema: bool | None = None
    """A JSON schema was enforced although the prompt did not ask for JSON."""
    problem: str = ""
    """Why it cannot be used, in one sentence; empty when it can."""


async def probe(
    endpoint: Endpoint,
    *,
    connect: Callable[[Endpoint], Connect] = fixed_address,
    ledger: Ledger | None = None,
) -> Probe:
    """Ask the endpoint a few tiny questions (at most seven requests, some 200 tokens). Never raises a WinnowError.

    Replies are asked for anew each time; `ledger` is only told what was sent.
    """
    result = Probe(endpoint=endpoint.name, model=endpoint.model)
    asking = _Asking(connect, ledger)
    started = time.perf_counter()
    try:
        (first,) = await asking.ask(endpoint, [0])
    except WinnowError as e:
        return result.model_copy(update={"problem": str(e), "reachable": asking.calls > 0})
    if isinstance(first, str):
        return result.model_copy(update={"problem": first, "reachable": True})
    update: dict[str, Any] = {"reachable": True, "answered": True, "latency_s": time.perf_counter() - started}
    try:
        update["sends_n"] = await _takes_n(endpoint, asking)
        update["sends_seed"] = await _keeps_seed(endpoint, asking)
        update["json_schema"] = await _enforces_schema(endpoint, asking)
    except WinnowError as e:
        update["problem"] = str(e)
    return result.model_copy(update=update)


async def _takes_n(endpoint: Endpoint, asking: _Asking) -> bool:
    before = asking.calls
    replies = await asking.ask(endpoint.model_copy(update={"sends_n": True}), [0, 1])
    return asking.calls == before + 1 and all(isinstance(r, Completion) for r in replies)


async def _keeps_seed(endpoint: Endpoint, asking: _Asking) -> bool | None:
    """True when one seed gives one text and another seed another; None when all are alike."""
    seeded = endpoint.model_copy(update={"sends_seed": True, "sends_n": False})
    first, other = await asking.ask(seeded, [0, 1])
    (again,) = await asking.ask(seeded, [0])
    texts = [r.text for r in (first, again, other) if isinstance(r, Completion)]
    if len(texts) < 3:
        return False
    if texts[0] != texts[1]:
        return False
    return True if texts[0] != texts[2] else None


async def _enforces_schema(endpoint: Endpoint, asking: _Asking) -> bool:
    (reply,) = await asking.ask(endpoint.model_copy(update={"json_schema": True}), [0], schema=SCHEMA)
    if not isinstance(reply, Completion):
        return False
    try:
        return set(json.loads(reply.text)) == {"city"}
    except (ValueError, TypeError):
        return False


class _Asking:
    """Asks the same endpoint in several manners; it is a `Ledger` that has no reply to give."""

    def __init__(self, connect: Callable[[Endpoint], Connect], ledger: Ledger | None) -> None:
        self._connect = connect
        self._ledger = ledger
        self._budget = Budget()

    @property
    def calls(self) -> int:
        """Requests that left this machine so far."""
        return self._budget.spent.calls

    def get(self, key: str) -> str | None:
        return None

    def write(self, replies: Sequence[Kept], sent: Sequence[Entry]) -> None:
        if self._ledger is not None:
            self._ledger.write([], sent)

    async def ask(
        self, endpoint: Endpoint, replicates: list[int], *, schema: str | None = None
    ) -> list[Completion | str]:
        brief = endpoint.model_copy(update={"retries": min(1, endpoint.retries)})
        question = Message(role="user", content="Write one short sentence about a town that you like.")
        sampling = Sampling(temperature=1.0, max_tokens=64 if schema else 16, seed=1, json_schema=schema)
        terms = Terms(budget=self._budget, ledger=self)
        async with Access(lambda name: brief, terms, self._connect) as access:
            return await access.chat(brief.name, "test").complete([question], sampling, replicates)
