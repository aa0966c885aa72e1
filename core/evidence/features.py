"""Feature: something true or false of one rollout that can be counted and said in words.

Features describe *how* a rollout answered or acted, never *what* the right answer is: words that occur in
the answers of the tasks are masked before words are counted (DESIGN 2.5: never leaks answers).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.rollout import Task

Theme = Literal[
    "length",
    "opening",
    "ending",
    "number",
    "json",
    "case",
    "hedging",
    "layout",
    "word",
    "cut",
    "tool",
    "order",
    "parameter",
    "error",
    "recovery",
    "steps",
]
"""What a feature is about; features of one theme make one lesson."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One boolean property of a rollout."""

    name: str
    """Stable, e.g. `one_word`, `first_tool=read_json`."""
    label: str
    """Past tense, fit for "41 of 52 winners ...": "answered with one word"."""
    theme: Theme
    rank: int = 50
    """Smaller is easier to say: names the finding when several features are the same column."""
    value: str = ""
    """The part that varies with the rollouts: a tool, a parameter, an error signature, a word."""

    @property
    def is_word(self) -> bool:
        """Words are counted as an insight for the reader; no lesson is made of them."""
        return self.theme == "word"


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())


def stands_in(word: str, text: str) -> bool:
    """Whether a text holds a word as a whole word."""
    return word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def parsed(text: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or list that a text is, if it is one."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


# --- what could be an answer ---------------------------------------------------------------------------


def masked_words(tasks: Iterable[Task]) -> frozenset[str]:
    """Lower-case words that occur in answers, choices or labels of the tasks."""
    return frozenset(w for task in tasks for text in answers_of(task) for w in words_of(text))


def answers_of(task: Task) -> list[str]:
    """Every text that could be a right answer of a task, choices and labels included; none is empty."""
    value = parsed(task.answer) if task.answer else None
    texts = [task.answer or ""] if value is None else list(_leaves(value))
    texts += _given_answers(task.verifier.options)
    return [t for t in texts if t.strip()]


def choices_of(value: object) -> Iterable[str]:
    """The choices in a verifier's options, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner) if key == "choices" else choices_of(inner)


_ANSWER_OPTIONS = frozenset(
    {"choices", "labels", "answer", "answers", "accept", "aliases", "expected", "values"}
)
"""Verifier options that hold answers, at any depth."""


def _given_answers(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner) if key in _ANSWER_OPTIONS else _given_answers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _given_answers(inner)


def _leaves(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
