"""The words of two texts against each other: whether they may say the same, and whether they say opposite things.

Similarity only suggests (DESIGN 2.6.2): what shares its words may still be the opposite, and the model is asked. What
is surely opposite is never united, whoever suggests it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from core.words import normalise

ALIKE = 0.5
"""Share of common words (Jaccard) from which two texts are shown to the model as near-duplicates."""
ALMOST = 0.8
"""Share of common words from which a "not" in one of two texts turns it into the opposite of the other."""

_NUMBERS = {
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
}
_NEGATIONS = frozenset(
    (
        "not",
        "no",
        "never",
        "without",
        "avoid",
        "don't",
        "dont",
        "doesn't",
        "cannot",
        "can't",
        "mustn't",
        "shouldn't",
    )
)
_EMPHASIS = frozenset(("do", "always"))
_ANTONYMS = tuple(
    (frozenset(a), frozenset(b))
    for a, b in (
        (("uppercase", "upper", "capitals"), ("lowercase", "lower")),
        (("first", "before"), ("last", "after")),
        (("more", "longer"), ("fewer", "less", "shorter")),
        (("include", "keep", "add"), ("omit", "exclude", "remove", "drop")),
        (("ascending",), ("descending",)),
        (("maximum", "most", "largest"), ("minimum", "least", "smallest")),
        (("true",), ("false",)),
    )
)


@lru_cache(8_192)
def words_of(text: str) -> frozenset[str]:
    """The words of a text, without case and punctuation."""
    return frozenset(w.strip(".,;:!?\"'`()") for w in normalise(text).split()) - {""}


def share_words(a: str, b: str) -> bool:
    """Whether at least half of the words of two texts are common to both.

    >>> share_words("Answer with one word only.", "Answer with only one lowercase word")
    True
    """
    return _share(words_of(a), words_of(b)) >= ALIKE


def opposed(a: str, b: str) -> bool:
    """Whether two texts that sound alike surely say opposite things: polarity, number or antonym (DESIGN 2.6.2).

    >>> opposed("Answer in uppercase.", "Answer in lowercase."), opposed("Use 3 steps.", "Use four steps.")
    (True, True)
    >>> opposed("Round the result.", "Do not round the result."), opposed("Use one word.", "Use 1 word, no more.")
    (True, False)
    """
    first, second = words_of(a), words_of(b)
    if any(abs(_side(first, x, y) - _side(second, x, y)) == 2 for x, y in _ANTONYMS):
        return True
    numbers, others = _numbers(first), _numbers(second)
    if not numbers <= others and not others <= numbers:
        return True
    negated = bool(first & _NEGATIONS) is not bool(second & _NEGATIONS)
    plain = _NEGATIONS | _EMPHASIS
    return negated and _share(first - plain, second - plain) >= ALMOST


def _side(words: frozenset[str], these: frozenset[str], those: frozenset[str]) -> int:
    """1 where only some of `these` are among the words, -1 where only some of `those` are, else 0."""
    return bool(words & these) - bool(words & those)


def _numbers(words: frozenset[str]) -> set[str]:
    return {_NUMBERS.get(w, w) for w in words if w in _NUMBERS or re.fullmatch(r"-?\d+(?:[.,]\d+)?%?", w)}


def _share(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0
