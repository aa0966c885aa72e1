"""Where two attempts at one task part ways: the first step, or the first message, at which they differ.

1. Where either attempt has steps, steps are compared: first the tool and its parameters, then how the call came out
   (success, error, output). Where the parameters differ, that is what is told, even where the output differs too: it
   follows from them.
2. Else messages are compared: role and name, then content. What both were given alike (the system prompt with its
   lessons, the question) is equal, so the first difference is the first thing that the model did otherwise.
3. Where all of that is equal, the final answers are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

from core.record import Record, canonical_json
from core.rollout import Message, Step, Trajectory

Kind = Literal["step", "message", "answer"]
What = Literal["tool", "parameters", "output", "ended", "role", "content", "answer"]


T = TypeVar("T")


class Divergence(Record):
    """The first thing that differs."""

    kind: Kind
    place: int
    """Of the step or message, from 0; of the answer, 0."""
    what: What
    """What of it differs; "ended" = one of the two has no further step or message."""


def first_divergence(one: Trajectory, other: Trajectory) -> Divergence | None:
    """The first difference between two trajectories; None where they do the same throughout."""
    found: Divergence | None = None
    if one.steps or other.steps:
        found = _first("step", one.steps, other.steps, _step)
    elif one.messages and other.messages:
        found = _first("message", one.messages, other.messages, _message)
    if found is None and one.answer != other.answer:
        return Divergence(kind="answer", place=0, what="answer")
    return found


def _first(
    kind: Kind, one: Sequence[T], other: Sequence[T], differ: Callable[[T, T], What | None]
) -> Divergence | None:
    for place, (a, b) in enumerate(zip_longest(one, other)):
        what: What | None = "ended" if a is None or b is None else differ(a, b)
        if what:
            return Divergence(kind=kind, place=place, what=what)
    return None


def _step(a: Step, b: Step) -> What | None:
    if a.tool != b.tool:
        return "tool"
    if canonical_json(a.parameters) != canonical_json(b.parameters):
        return "parameters"
    if (a.success, a.error, a.output) != (b.success, b.error, b.output):
        return "output"
    return None


def _message(a: Message, b: Message) -> What | None:
    if (a.role, a.name) != (b.role, b.name):
        return "role"
    return "content" if a.content != b.content else None
