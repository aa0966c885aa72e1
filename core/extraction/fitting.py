"""How much of a text fits a prompt, and what is shown of one that does not: head and tail, with a visible mark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from core.injection import estimate_tokens
from core.ports import ChatModel
from core.rollout import Message

ANY = 10**9
"""Room for whatever there is."""
MARGIN = 32
"""Tokens that stay free beside prompt and reply."""


def reply_tokens(context_length: int, wanted: int) -> int:
    """How many tokens a reply may have: what is wanted, at most a third of the context."""
    return max(32, min(wanted, context_length // 3))


def prompt_room(model: ChatModel, wanted_reply: int) -> int:
    """Tokens that a prompt may have, so that the reply still fits the context."""
    return model.context_length - reply_tokens(model.context_length, wanted_reply) - MARGIN


def tokens_of(messages: Sequence[Message]) -> int:
    """About how many tokens the messages take."""
    # The system part of a stage is the same in every prompt: it is counted once.
    return sum(_counted(m.content) if m.role == "system" else estimate_tokens(m.content) for m in messages)


_counted = lru_cache(32)(estimate_tokens)


def clip(text: str, characters: int) -> str:
    """Head and tail of a text, with a visible mark between them; whole where that is not shorter."""
    half = max(1, characters // 2)
    left_out = len(text) - 2 * half
    mark = f" [... {left_out:,} characters left out ...] "
    return text if left_out <= len(mark) else text[:half] + mark + text[-half:]


def surely_fit(texts: Iterable[str], tokens: int) -> bool:
    """Whether texts have at most so many tokens together, as far as that can be told without counting."""
    left = tokens / 1.2  # an ASCII character is never counted as more
    for text in texts:
        left -= len(text)
        if left < 0 or not text.isascii():
            return False
    return True


def fits(text: str, tokens: int) -> bool:
    """Whether a text has at most so many tokens; quick for small and for huge ones."""
    if surely_fit([text], tokens):
        return True
    # A token holds seldom more than 12 characters: a huge text need not be looked at in full.
    return len(text) <= max(0, tokens) * 12 and estimate_tokens(text) <= tokens


def fitted(text: str, tokens: int) -> str:
    """The text, or as much of its head and tail as fits."""
    return text if fits(text, tokens) else largest(lambda n: clip(text, n), len(text), tokens)


def largest(made: Callable[[int], str], most: int, tokens: int) -> str:
    """made(n) for the largest n up to `most` that fits, found by halving; made(1) where none does."""
    low, high = 1, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(made(middle), tokens) else (low, middle - 1)
    return made(low)
