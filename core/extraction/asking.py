"""Asking a model for one reply that can be used.

1. A reply that cannot be used is asked for once more, with the reader's complaint.
2. A prompt that is too long for the endpoint, whose tokenizer counts otherwise than we do, is made anew at half the
   size, once.
3. A reply that failed is data; what stops every call (a bad key, a spent budget) is raised, and ends the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from core.errors import AnswerError, InputError
from core.extraction.fitting import clip, prompt_room, reply_tokens, tokens_of
from core.extraction.template import prompt
from core.ports import ChatModel, Completion, Sampling
from core.rollout import Message

T = TypeVar("T")

Made = Callable[[int], Sequence[Message]]
"""Makes the prompt for a room of so many tokens."""

ECHO_CHARACTERS = 2_000
"""How much of an unusable reply is shown to the model when it is asked again."""

TOO_LONG = "does not fit the context"
"""How `core.llm` says that a prompt has more tokens than the endpoint takes."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What came of asking: a value, a complaint, or both (a value that is usable but not as asked)."""

    value: T | None
    raw: str = ""
    """The reply as it came; both replies where it was asked for twice in vain."""
    error: str = ""
    replied: bool = True
    """False where there was no reply at all: that is not asked for again here (the endpoint's retries did)."""
    room: int = 0
    """Tokens that the prompt was made for."""


async def ask(
    model: ChatModel,
    made: Made,
    read: Callable[[Completion], tuple[T, str]],
    *,
    stage: str,
    tokens: int,
    schema: str,
    seed: int,
    calls: Counter[str],
    again: bool = True,
) -> Answer[T]:
    """Ask for one reply, and once more with the complaint where it cannot be used.

    Args:
        model: who is asked.
        made: makes the prompt.
        read: gives the value and "" or what is wrong with it; raises `AnswerError` or `InputError`
            where there is none.
        stage: under which name the call is counted in `calls`; every further one is counted as "retry".
        tokens: that the reply may have, if the context has room for them.
        schema: JSON Schema of the reply.
        seed: of the sampling.
        calls: is counted up.
        again: whether there may be a second call after a reply that cannot be used.

    Raises:
        ModelUnavailableError: the endpoint cannot be used at all.
        BudgetError: the cap of the run would be passed.
        StoppedError: somebody wants the work to stop.
        InputError: the key's variable is not set, or (TrustError) may not be read.
    """
    most = reply_tokens(model.context_length, tokens)
    sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=most, seed=seed, json_schema=schema)
    room = prompt_room(model, tokens)
    messages = made(room)
    first = await _ask_once(model, messages, sampling, read, stage, calls)
    if not first.replied and TOO_LONG in first.error and (shorter := made(room // 2)) != messages:
        room, first = room // 2, await _ask_once(model, shorter, sampling, read, "retry", calls)
    first = replace(first, room=room)
    if not first.error or not first.replied or not again:
        return first
    echo = Message(role="assistant", content=clip(first.raw, ECHO_CHARACTERS) or "(an empty reply)")
    more = [echo, *prompt("retry", error=first.error)]
    room -= tokens_of(more)
    second = await _ask_once(model, [*made(room), *more], sampling, read, "retry", calls)
    if second.value is None:
        raw = f"{first.raw}\n\n--- asked again ({first.error}) ---\n\n{second.raw or second.error}"
        return replace(first, raw=raw, error=first.error if first.value is not None else second.error)
    return replace(second, room=room)


async def _ask_once(
    model: ChatModel,
    messages: Sequence[Message],
    sampling: Sampling,
    read: Callable[[Completion], tuple[T, str]],
    stage: str,
    calls: Counter[str],
) -> Answer[T]:
    replies = await model.complete(messages, sampling)  # what it raises concerns every other call as well
    calls[stage] += 1
    reply = replies[0] if replies else "The endpoint gave no reply."
    if isinstance(reply, str):
        return Answer(None, error=reply, replied=False)
    if reply.cached:
        calls["cached"] += 1
    try:
        value, complaint = read(reply)
    except (AnswerError, InputError) as e:
        return Answer(None, reply.text, str(e))
    return Answer(value, reply.text, complaint)
