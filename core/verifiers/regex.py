r"""A regular expression, kept from running for ever.

Python's `re` cannot be interrupted, so what a pattern may cost is bounded before it runs:

1. A repeat that holds another repeat of variable length, or alternatives that can begin alike, is refused
   when the verifier is built: there the time grows exponentially with the answer (`(a+)+`, `(a|aa)*`).
2. d repeats one after another can divide n characters in C(n + d, d) ways (d is one more for a search, which
   may start anywhere). The longest answer that is judged is the n for which this stays within `STEPS`, and never more
   than `MAX_ANSWER`. A longer answer is unscored, with that reason.
"""

from __future__ import annotations

import bisect
import importlib
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import Field, field_validator

from core.rollout import Score, Task
from core.verifiers.check import Check

MAX_ANSWER = 10_000
"""Characters of the longest answer that is matched."""

STEPS = 1e8
"""Steps of the matcher that a pattern may take at worst: about one or two seconds."""

_MANY = 10
"""A repeat of more than this many variants counts as unbounded."""

_SHORTEST = 32
"""Characters; a pattern that may not even be matched against so many is refused."""


class Regex(Check):
    """1 where the pattern matches the answer, outer white space ignored."""

    max_answer: ClassVar[int] = MAX_ANSWER

    pattern: str = Field(min_length=1, max_length=1000)
    full: bool = True
    """Whether the whole answer must match; else a part is enough."""

    @field_validator("pattern")
    @classmethod
    def _bounded(cls, value: str) -> str:
        longest_answer(value, full=False)
        return value

    @property
    def needs_answer(self) -> bool:
        return False

    @property
    def longest(self) -> int:
        return longest_answer(self.pattern, full=self.full)

    def judge(self, task: Task, answer: str) -> Score:
        match = re.fullmatch if self.full else re.search
        if match(self.pattern, answer.strip()):
            return Score(value=1.0)
        return Score(value=0.0, reason="the answer does not match the pattern")


@lru_cache(maxsize=1024)
def longest_answer(pattern: str, *, full: bool) -> int:
    """How many characters may be matched against a pattern (see the rules of this module).

    Raises:
        ValueError: no pattern, or one whose time cannot be bounded.
    """
    try:
        re.compile(pattern)
        # The parse tree has no public name; every Python from 3.11 on has it here.
        tree = importlib.import_module("re._parser").parse(pattern)
    except (re.error, OverflowError, RecursionError) as e:
        raise ValueError(f"not a regular expression: {e}") from e
    degree, variants = (0 if full else 1), 1
    for low, high in _repeats(tree, inside=False):
        if high - low > _MANY:
            degree += 1
        else:
            variants *= high - low + 1
    budget = STEPS / variants
    too_long = bisect.bisect_right(range(MAX_ANSWER + 1), budget, key=lambda n: math.comb(n + degree, degree))
    if too_long <= _SHORTEST:
        raise ValueError("has too many repeats for its time to be bounded; write it with fewer of them")
    return too_long - 1


def _repeats(tree: Any, *, inside: bool) -> Iterator[tuple[int, int]]:
    """(fewest, most) of every repeat of variable length; `inside` a repeat there may be none."""
    for op, argument in tree:
        name = str(op)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            low, high, body = argument[0], int(argument[1]), argument[2]
            if inside and high != low:
                raise ValueError(
                    "has a repeat inside a repeat, whose time may grow without bound; "
                    "write the inner one with a fixed count, or the group only once"
                )
            if high != low:
                yield low, high
            yield from _repeats(body, inside=inside or high > 1)
        elif name == "BRANCH":
            branches = argument[1]
            if inside and not _begin_differently(branches):
                raise ValueError(
                    "repeats alternatives that can begin alike, whose time may grow without bound; "
                    "make each alternative begin with another character"
                )
            for branch in branches:
                yield from _repeats(branch, inside=inside)
        elif name == "GROUPREF":
            yield 0, MAX_ANSWER  # matching again what a group took costs like another repeat
        else:
            for body in _bodies(name, argument):
                yield from _repeats(body, inside=inside)


def _begin_differently(branches: list[Any]) -> bool:
    firsts = [(str(branch[0][0]), branch[0][1]) for branch in branches if len(branch)]
    literal = all(op == "LITERAL" for op, _ in firsts)
    return literal and len(firsts) == len(branches) == len({chr(c).casefold() for _, c in firsts})


def _bodies(name: str, argument: Any) -> list[Any]:
    """The patterns that an operation holds."""
    match name:
        case "SUBPATTERN":
            return [argument[3]]
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
        case "GROUPREF_EXISTS":
            return [body for body in argument[1:] if body is not None]
        case _:
            return []
