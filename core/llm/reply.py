"""Reads the body of a chat completion: what is usable, what is missing, and how many tokens it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from core.ports import TokenChance

BYTES_PER_TOKEN = 3
"""For servers that count nothing: one token for each 3 bytes of UTF-8, rounded up. English has about 4, so this
counts too many rather than too few."""

MOST_TOKENS = 10**9
"""A larger count is not a count."""


class UnreadableReplyError(ValueError):
    """The body holds no usable reply; str(e) completes the sentence "The endpoint answered ..."."""


@dataclass(frozen=True)
class Choice:
    """One reply of a request."""

    text: str
    finish_reason: str | None
    tokens: int = 0
    """Completion tokens, counted or estimated (see `count_tokens`)."""
    chances: tuple[TokenChance, ...] = ()
    """Log-probabilities, where the server gave them with token ids."""


@dataclass(frozen=True)
class Reply:
    """What came back for one request."""

    choices: dict[int, Choice]
    """By position, 0 to n-1; positions whose choice was missing or unusable are absent."""
    prompt_tokens: int
    """Of the whole request, however many choices it has."""


def read_reply(raw: bytes, n: int, max_tokens: int, prompt_bytes: int) -> Reply:
    """Read the usable choices of a response body.

    An empty text is a reply like any other (a model may say nothing). A choice without a text, or with something
    else in its place, is not usable.

    Args:
        raw: the body.
        n: how many choices were asked for; further ones are left out.
        max_tokens: of the request, for each choice.
        prompt_bytes: length of the messages, for servers that count nothing.

    Raises:
        UnreadableReplyError: not one choice is usable.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableReplyError(
            "with something that is not JSON" if raw else "with an empty body"
        ) from None
    if not isinstance(body, dict):
        raise UnreadableReplyError("with JSON that is not an object")
    listed = body.get("choices")
    if not isinstance(listed, list):
        error = body.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        raise UnreadableReplyError(
            f"with an error in place of a reply: {message}" if isinstance(message, str) else "without choices"
        )
    choices = _usable(listed, n)
    if not choices:
        raise UnreadableReplyError("without a single usable choice")
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = count_tokens(
        [choices[i] for i in sorted(choices)],
        _count(usage.get("completion_tokens")),
        max_tokens,
        # llama.cpp (it sends `timings`) counts the first choice only; others count them all.
        first_only=n > 1 and isinstance(body.get("timings"), dict),
    )
    prompt_tokens = _count(usage.get("prompt_tokens"))
    return Reply(
        {i: replace(choices[i], tokens=c) for i, c in zip(sorted(choices), counts, strict=True)},
        -(-prompt_bytes // BYTES_PER_TOKEN) if prompt_tokens is None else prompt_tokens,
    )


def count_tokens(
    choices: Sequence[Choice], reported: int | None, max_tokens: int, *, first_only: bool = False
) -> list[int]:
    """Completion tokens of each choice, from the one number that a server reports for all of them.

    When the server counted all choices, its number is shared out in proportion to their bytes (and one for the end),
    and the sum is exact. When it counted the first only, the others are estimated at the first one's bytes for each
    token; when it counted nothing, at `BYTES_PER_TOKEN`. In an estimate, a choice that was cut by `max_tokens` has
    exactly so many.

    >>> count_tokens([Choice("abcde", "stop"), Choice("ab", "stop")], 9, 20)
    [6, 3]
    >>> count_tokens([Choice("abcdef", "stop"), Choice("abc", "stop"), Choice("a", "length")], 4, 20, first_only=True)
    [4, 2, 20]
    """
    sizes = [len(c.text.encode()) for c in choices]
    if len(choices) == 1 and reported is not None:
        return [reported]
    rate = sizes[0] / reported if first_only and reported and sizes[0] else BYTES_PER_TOKEN
    counts = [
        max_tokens if c.finish_reason == "length" else min(max_tokens, max(1, -int(-size // rate)))
        for c, size in zip(choices, sizes, strict=True)
    ]
    if reported is None:
        return counts
    if first_only:
        return [reported, *counts[1:]]
    return _share(reported, sizes)


def _share(total: int, sizes: Sequence[int]) -> list[int]:
    """Whole numbers in proportion to the sizes that add up to the total."""
    weights = [size + 1 for size in sizes]
    shares: list[int] = []
    done = 0
    for i in range(len(weights)):
        upto = total * sum(weights[: i + 1]) // sum(weights)
        shares.append(upto - done)
        done = upto
    return shares


def _usable(listed: Sequence[Any], n: int) -> dict[int, Choice]:
    found: dict[int, Choice] = {}
    for position, item in enumerate(listed[:n]):
        if not isinstance(item, dict) or not isinstance(message := item.get("message"), dict):
            continue
        text = message.get("content")
        if text is None and isinstance(refusal := message.get("refusal"), str):
            text = refusal  # what the model said, where a server files a refusal apart
        if text is None and ("content" in message or message.get("tool_calls")):
            text = ""
        if not isinstance(text, str):
            continue
        index = item.get("index", position)
        if type(index) is not int or not 0 <= index < n or index in found:
            continue
        reason = item.get("finish_reason")
        said = reason if isinstance(reason, str) else None
        found[index] = Choice(whole(text), said, chances=_chances(item.get("logprobs")))
    return found


def _chances(logprobs: Any) -> tuple[TokenChance, ...]:
    """All of them, or none: half of a reply cannot be scored."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    try:
        return tuple(TokenChance(id=t["id"], logprob=t["logprob"]) for t in content)
    except (ValidationError, TypeError, KeyError):
        return ()


def whole(text: str) -> str:
    """The text with halves of surrogate pairs, which no database can hold, as U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
