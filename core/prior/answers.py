"""What of a task is a right answer: a prior must not promote or demote it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from core.rollout import Task

LABELS = {"choices", "equals"}
"""Options of verifiers that name right answers or labels."""


def answers_of(task: Task) -> list[str]:
    """The right answer of a task and the labels that its verifier names; of JSON, the values in it."""
    found: list[JsonValue] = [_labels(task.verifier.options)]
    if task.answer is not None:
        try:
            parsed = json.loads(task.answer)
        except (ValueError, RecursionError):
            parsed = task.answer
        found.append(parsed if isinstance(parsed, dict | list) else task.answer)
    return [text for text in _leaves(found) if text.strip()]


def spellings(answer: str) -> set[str]:
    """How an answer may come along: in other cases, at the beginning of a reply or after a space."""
    plain = answer.strip()
    cases = {plain, plain.lower(), plain.upper(), plain.capitalize(), plain.title()}
    return cases | {f" {each}" for each in cases}


def _labels(options: JsonValue) -> list[JsonValue]:
    """What the options of a verifier name as answers, however deep."""
    if not isinstance(options, dict):
        return []
    named = [value for key, value in options.items() if key in LABELS]
    inner = [each for key, value in options.items() if key not in LABELS for each in _labels(value)]
    return [*named, *inner]


def _leaves(value: JsonValue) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, str):
            yield each
        elif each is not None:
            yield json.dumps(each)


def says_something(piece: str) -> bool:
    """Whether a token can be a part of a word or a number: a full stop in an answer is no answer."""
    return any(c.isalnum() or c == "\ufffd" for c in piece)
