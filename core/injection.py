"""How experiences become a system prompt: one renderer for rollouts, evaluation and export (DESIGN 2.7).

The template: `HEADER`, then a line `[G0] text` for each experience, numbered in the order given. A text of
several lines stays one lesson: each of its line breaks is followed by `INDENT`, so that a line that starts
with `[G1] ` is always the start of a lesson, and `read_injection` gives the texts back, exactly.
Equal input gives equal bytes, which is what the prompt cache of a server lives on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from pydantic import Field

from core.experience import Experience
from core.record import Record

HEADER = "Lessons from earlier attempts. Follow the ones that apply:"
INDENT = "    "

_BREAK = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")
_INDENTED_BREAK = re.compile(_BREAK.pattern + INDENT)
_LETTERS = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_SINGLES = re.compile(r"[!-/:-@\[-`{-~\d\n\t\r]| (?=\d)", re.ASCII)
_ASCII = re.compile("[\x00-\x7f]+")
_LABEL = re.compile(r"\n\[G\d+\] ")

REMEMBERED = 500
"""Characters of a text whose estimate is remembered: lessons and questions are counted again and again."""


class Injection(Record):
    """The text that is put into the system prompt, and which experience stands behind each label."""

    text: str = ""
    """Empty where there is nothing to inject."""
    labels: dict[str, str] = Field(default_factory=dict)
    """{"G0": "E-0007"}, in the order of the text."""


def render(experiences: Sequence[Experience]) -> Injection:
    """Render experiences in the order given; none gives an empty text.

    >>> one = Experience(id="E-0007", text="Read the file first.")
    >>> print(render([one]).text)
    Lessons from earlier attempts. Follow the ones that apply:
    [G0] Read the file first.
    >>> render([one]).labels
    {'G0': 'E-0007'}
    """
    if not experiences:
        return Injection()
    lines = [HEADER]
    lines += [f"[G{i}] {_indented(e.text)}" for i, e in enumerate(experiences)]
    return Injection(text="\n".join(lines), labels={f"G{i}": e.id for i, e in enumerate(experiences)})


def _indented(text: str) -> str:
    return _BREAK.sub(r"\1" + INDENT, text)


def read_injection(text: str) -> list[str]:
    """The texts of the lessons in a rendered text: the inverse of `render`.

    Raises:
        ValueError: the text does not start with the template's first line.
    """
    if not text:
        return []
    header, *lessons = _LABEL.split(text)
    if header != HEADER:
        raise ValueError("this is not an injection text: its first line is another one")
    return [_INDENTED_BREAK.sub(r"\1", lesson) for lesson in lessons]


def system_prompt(injection: Injection, base: str = "") -> str:
    """The whole system message, the agent's own prompt first; empty where no system message is to be sent."""
    return "\n\n".join(part for part in (base, injection.text) if part)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes, where no tokenizer is known; meant to be rather too high.

    A run of letters counts a token for each 3.2 letters (2 for capitals) but at least 1.2; a digit, a
    punctuation mark and a line break one each, as does the space before a number (small tokenizers join
    none of them); any other character 0.9 for each byte of its UTF-8 form. Against the tokenizer of the
    embedded model: 1.2 to 1.4 times the true count for English lessons, 0.9 to 2 for other scripts.
    """
    return math.ceil(_weight(text) if len(text) <= REMEMBERED else _weighed(text))


def estimate_lessons(experiences: Sequence[Experience]) -> int:
    """`estimate_tokens` of what `render` makes of a whole library, but for rounding; each lesson is remembered."""
    if not experiences:
        return 0
    labels = sum(4.2 + len(str(i)) for i in range(len(experiences)))  # a line break, "[", "G", digits and "]"
    return math.ceil(_weight(HEADER) + labels + sum(_weight_behind_label(e.text) for e in experiences))


@lru_cache(maxsize=32_768)
def _weight_behind_label(text: str) -> float:
    return _weighed(" " + _indented(text))


def _weighed(text: str) -> float:
    runs = sum(map(_tokens_of_run, _LETTERS.findall(text)))
    singles = len(_SINGLES.findall(text))
    other = 0 if text.isascii() else len(_ASCII.sub("", text).encode("utf-8", "replace"))
    return runs + singles + 0.9 * other


_weight = lru_cache(maxsize=32_768)(_weighed)


@lru_cache(maxsize=16_384)  # a library says the same words again and again
def _tokens_of_run(run: str) -> float:
    return max(1.2, len(run) / (2.0 if run.isupper() else 3.2))
