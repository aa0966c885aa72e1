"""One of several given choices."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pydantic import Field, field_validator

from core.rollout import Score, Task
from core.verifiers.check import Check, quote
from core.verifiers.wording import normalise, places

_LETTER = re.compile(r"(?<![\w'’.])([A-Za-z])(?![\w'’])")
_POINTS_AT = re.compile(r"\b(?:option|choice|letter|answer|answer is|answer:)\s*[(\[{\"“]?$", re.IGNORECASE)
_AFTER_A_CHOICE = frozenset(
    {
        "and",
        "are",
        "as",
        "because",
        "but",
        "fits",
        "follows",
        "is",
        "isn't",
        "matches",
        "means",
        "must",
        "not",
    }
    | {"or", "seems", "since", "should", "was", "which", "while", "would"}
)
"""Words that follow a named choice ("A is right"), and not an article or pronoun ("A cat", "I think")."""


class Choice(Check):
    """1 where exactly one of the choices is named and it is the right one; several named give 0.

    Choices are looked for as whole words, the longest first ("New York City" hides "New York"). Where all
    choices are single letters, the article "a" and the pronoun "I" of a sentence are not taken for a choice.
    """

    choices: tuple[str, ...] = Field(min_length=2, max_length=1000)

    @field_validator("choices")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        seen: dict[str, str] = {}
        for choice in value:
            form = normalise(choice)
            if not form:
                raise ValueError(f"the choice {quote(choice)} holds no letter, digit or symbol")
            if form in seen:
                raise ValueError(f"the choices {quote(seen[form])} and {quote(choice)} cannot be told apart")
            seen[form] = choice
        return value

    def ready(self, task: Task) -> None:
        if normalise(task.answer or "") not in self._forms:
            known = ", ".join(quote(c, 30) for c in self.choices[:8])
            raise ValueError(f"the answer {quote(task.answer or '')} is none of the choices {known}")

    def judge(self, task: Task, answer: str) -> Score:
        named = set(_letters(answer, self._forms)) if self._lettered else self._words(answer)
        if not named:
            return Score(value=0.0, reason="the answer names none of the choices")
        if len(named) > 1:
            return Score(
                value=0.0, reason=f"the answer names {len(named)} choices: {', '.join(sorted(named))}"
            )
        (only,) = named
        if only == normalise(task.answer or ""):
            return Score(value=1.0)
        return Score(value=0.0, reason=f"the answer names {quote(only)}, right is {quote(task.answer or '')}")

    @property
    def _forms(self) -> frozenset[str]:
        return frozenset(normalise(c) for c in self.choices)

    @property
    def _lettered(self) -> bool:
        return all(re.fullmatch("[a-z]", form) for form in self._forms)

    def _words(self, answer: str) -> set[str]:
        text, named = normalise(answer), set()
        for form in sorted(self._forms, key=lambda f: (-len(f), f)):
            for start, end in reversed(places(form, text)):
                named.add(form)
                # A word that is taken cannot be a shorter choice as well.
                text = f"{text[:start]}\n{text[end:]}"
        return named


def _letters(answer: str, forms: frozenset[str]) -> Iterator[str]:
    """Letters that the answer names as choices."""
    text = re.sub(r"[*_`]", "", unicodedata.normalize("NFKC", answer))
    if (bare := normalise(text)) in forms:
        yield bare
        return
    for match in _LETTER.finditer(text):
        letter, form = match[1], match[1].lower()
        if form in forms and _is_named(
            letter, text[max(0, match.start() - 40) : match.start()], text[match.end() :][:40]
        ):
            yield form


def _is_named(letter: str, before: str, after: str) -> bool:
    """Whether a letter that stands alone names a choice, by what is around it."""
    bracketed = before[-1:] in {"(", "[", "{"} or after[:1] in {")", "]", "}"}
    pointed_at = _POINTS_AT.search(before) is not None and re.match(r"\s+[^\W\d]", after) is None
    heads_a_line = before.rstrip(" ")[-1:] in {"", "\n"} and re.match(r"[.:]", after) is not None
    if bracketed or pointed_at or heads_a_line:
        return True
    if re.search(r"\b(?:option|choice)\s+$", before, re.IGNORECASE):
        return True
    if letter.islower():
        return letter not in "aeioy"  # these are words of their own in one language or another
    if letter not in "AI":
        return True
    follower = re.match(r"\s+([^\W\d][\w'’]*)", after)
    return follower is None or follower[1].lower() in _AFTER_A_CHOICE
