"""Tries an endpoint: is it there, does its model answer, what can it do?"""

from __future__ import annotations

import json
import time
from typing import Any

from core.errors import WinnowError
from core.llm.budget import Budget
from core.llm.client import Connect, OpenAIChat
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


async def probe(endpoint: Endpoint, *, connect: Connect | None = None) -> Probe:
    """Ask the endpoint a few tiny questions (at most seven requests, some 200 tokens). Never raises a WinnowError."""
    result = Probe(endpoint=endpoint.name, model=endpoint.model)
    started = time.perf_counter()
    budget = Budget()
    try:
        (first,) = await _ask(endpoint, connect, [0], budget)
    except WinnowError as e:
        return result.model_copy(update={"problem": str(e), "reachable": budget.spent.calls > 0})
    if isinstance(first, str):
        return result.model_copy(update={"problem": first, "reachable": True})
    update: dict[str, Any] = {"reachable": True, "answered": True, "latency_s": time.perf_counter() - started}
    try:
        update["sends_n"] = await _takes_n(endpoint, connect)
        update["sends_seed"] = await _keeps_seed(endpoint, connect)
        update["json_schema"] = await _enforces_schema(endpoint, connect)
    except WinnowError as e:
        update["problem"] = str(e)
    return result.model_copy(update=update)


async def _takes_n(endpoint: Endpoint, connect: Connect | None) -> bool:
    budget = Budget()
    replies = await _ask(endpoint.model_copy(update={"sends_n": True}), connect, [0, 1], budget)
    return budget.spent.calls == 1 and all(isinstance(r, Completion) for r in replies)


async def _keeps_seed(endpoint: Endpoint, connect: Connect | None) -> bool | None:
    """True when one seed gives one text and another seed another; None when all are alike."""
    seeded = endpoint.model_copy(update={"sends_seed": True, "sends_n": False})
    first, other = await _ask(seeded, connect, [0, 1])
    (again,) = await _ask(seeded, connect, [0])
    texts = [r.text for r in (first, again, other) if isinstance(r, Completion)]
    if len(texts) < 3:
        return False
    if texts[0] != texts[1]:
        return False
    return True if texts[0] != texts[2] else None


async def _enforces_schema(endpoint: Endpoint, connect: Connect | None) -> bool:
    able = endpoint.model_copy(update={"json_schema": True})
    (reply,) = await _ask(able, connect, [0], schema=SCHEMA)
    if not isinstance(reply, Completion):
        return False
    try:
        return set(json.loads(reply.text)) == {"city"}
    except (ValueError, TypeError):
        return False


async def _ask(
    endpoint: Endpoint,
    connect: Connect | None,
    replicates: list[int],
    budget: Budget | None = None,
    *,
    schema: str | None = None,
) -> list[Completion | str]:
    brief = endpoint.model_copy(update={"retries": min(1, endpoint.retries)})
    chat = OpenAIChat(brief, connect=connect, budget=budget)
    question = Message(role="user", content="Write one short sentence about a town that you like.")
    sampling = Sampling(temperature=1.0, max_tokens=64 if schema else 16, seed=1, json_schema=schema)
    try:
        return await chat.complete([question], sampling, replicates)
    finally:
        await chat.aclose()
