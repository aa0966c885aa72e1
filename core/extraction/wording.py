"""The words of two texts against each other: whether they may say the same, and whether they say opposite things.

Similarity only suggests (DESIGN 2.6.2): what shares its words may still be the opposite, and the model is asked. What
is surely opposite is never united, whoever suggests it. What shares nearly all of its words and says the opposite does
so in one of five ways: another number, a word against its antonym, with a thing against without it, a negation more, or
the same words in another order ("Answer first, explain later").
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


def _words(row: str) -> frozenset[str]:
    return frozenset(row.split())


_NEGATIONS = _words(
    "not no never without avoid don't dont doesn't isn't aren't won't cannot can't mustn't shouldn't skip refrain"
)
_EMPHASIS = _words("do does always must should please prefer use from")
_LITTLE = _words("a an the its their your any you")
"""Words that a text may have more or less and say the same."""
_ADVERBS = _words("first then next last later afterwards finally only just also")
"""Words that stand here or there in a sentence and say the same; what they order, `_clauses` puts in order."""


def _pairs(*rows: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Each row: some words, a bar, their antonyms."""
    sides = [[frozenset(_stem(word) for word in side.split()) for side in row.split("|")] for row in rows]
    return tuple((one, other) for one, other in sides)


def _stem(word: str) -> str:
    """A word of English without its ending, so that `retry` and `retrying` are one.

    >>> [_stem(w) for w in ("retry", "retrying", "retries", "stopping", "use", "using", "3.5", "is")]
    ['retri', 'retri', 'retri', 'stop', 'us', 'us', '3.5', 'is']
    """
    if not word.isalpha() or len(word) < 3:
        return word
    stem = next((word.removesuffix(end) for end in ("ing", "ed", "es", "s", "e") if word.endswith(end)), word)
    if not re.search("[aeiouy]", stem) or len(stem) < 2:
        return word
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lse":
        stem = stem[:-1]
    return f"{stem[:-1]}i" if stem.endswith("y") else stem


_STOPS = frozenset(map(_stem, _words("a an the its their your any and or of to in on at with without by")))
_ANTONYMS = _pairs(
    "uppercase upper capitals | lowercase lower",
    "first before | last after",
    "more longer | fewer less shorter",
    "include keep add | omit exclude remove drop",
    "ascending | descending",
    "maximum most largest | minimum least smallest",
    "true | false",
)
_ANTONYMS_IN_CONTEXT = _pairs(
    "start begin open | end finish close conclude",
    "early earlier | late later",
    "increase raise | decrease reduce lower",
    "enable allow permit accept | disable forbid deny reject",
    "above | below",
    "top | bottom",
    "show | hide",
    "inside | outside",
    "single | double",
    "singular | plural",
    "positive | negative",
    "fast quickly | slow slowly",
    "high higher | low lower",
    "up | down",
    "short | long",
    "newest latest | oldest earliest",
    "everything all | nothing none",
)
"""Words that mean much besides: they count only where the other words are common to both texts."""

_FRONTED = re.compile(r"^(before|after|if|when|whenever|once|unless|until|while)\b([^,]*),\s*(.+)$")
_AFTER = re.compile(r"^(.*?)[ ,]+after (.+)$")


@lru_cache(8_192)
def words_of(text: str) -> frozenset[str]:
    """The words of a text, without case and punctuation."""
    return frozenset(_listed(normalise(text)))


def _listed(text: str) -> list[str]:
    return [word for run in text.split() if (word := run.strip(".,;:!?\"'`()"))]


def share_words(a: str, b: str) -> bool:
    """Whether at least half of the words of two texts are common to both.

    >>> share_words("Answer with one word only.", "Answer with only one lowercase word")
    True
    """
    return _share(words_of(a), words_of(b)) >= ALIKE


def opposed(a: str, b: str) -> bool:
    """Whether two texts that sound alike surely say opposite things, in one of the five ways of this module.

    >>> opposed("Answer in uppercase.", "Answer in lowercase."), opposed("Use 3 steps.", "Use four steps.")
    (True, True)
    >>> opposed("Round the result.", "Do not round the result."), opposed("Use one word.", "Use 1 word, no more.")
    (True, False)
    >>> opposed("Give the number alone, without a unit.", "Give the number with its unit.")
    True
    >>> opposed("Call read_json before write_json.", "Call write_json before read_json.")
    True
    >>> opposed("Before you answer, read the file.", "Answer after you read the file.")
    False
    """
    first, second = words_of(a), words_of(b)
    numbers, others = _numbers(first), _numbers(second)
    if not numbers <= others and not others <= numbers:
        return True
    one, two = _in_order(a), _in_order(b)
    if one == two:  # "read before you answer" is "answer after you read"
        first, second = (words - {"before", "after"} for words in (first, second))
    elif sorted(one) == sorted(two):
        return True
    return _antonyms(first, second) or _with_and_without(a, b) or _one_negated(first, second)


def _antonyms(first: frozenset[str], second: frozenset[str]) -> bool:
    first, second = frozenset(map(_stem, first)), frozenset(map(_stem, second))
    if any(abs(_side(first, x, y) - _side(second, x, y)) == 2 for x, y in _ANTONYMS):
        return True
    found = [x | y for x, y in _ANTONYMS_IN_CONTEXT if abs(_side(first, x, y) - _side(second, x, y)) == 2]
    return any(_share(first - both - _STOPS, second - both - _STOPS) >= ALIKE for both in found)


def _side(words: frozenset[str], these: frozenset[str], those: frozenset[str]) -> int:
    """1 where only some of `these` are among the words, -1 where only some of `those` are, else 0."""
    return bool(words & these) - bool(words & those)


def _one_negated(first: frozenset[str], second: frozenset[str]) -> bool:
    negated = bool(first & _NEGATIONS) is not bool(second & _NEGATIONS)
    return negated and _share(_bare(first), _bare(second)) >= ALMOST


def _bare(words: frozenset[str]) -> frozenset[str]:
    return frozenset(_stem(w) for w in words - _NEGATIONS - _EMPHASIS - _LITTLE)


def _with_and_without(a: str, b: str) -> bool:
    """Whether one text wants with what the other wants without."""
    first, second = ((_named(text, "with"), _named(text, "without")) for text in map(normalise, (a, b)))
    wanted, unwanted = (
        (first[0] - first[1], second[0] - second[1]),
        (first[1] - first[0], second[1] - second[0]),
    )
    return bool(wanted[0] & unwanted[1] or wanted[1] & unwanted[0])


def _named(text: str, preposition: str) -> set[str]:
    """The next two words that say something after each such preposition."""
    found: set[str] = set()
    for rest in re.findall(rf"\b{preposition}\s+([^,.;:!?]+)", text):
        found.update([_stem(w) for w in _listed(rest) if w not in _LITTLE][:2])
    return found - _STOPS


@lru_cache(8_192)
def _in_order(text: str) -> tuple[str, ...]:
    """The words of a text in the order of what they say, without those that say the order and without small ones."""
    words: list[str] = []
    for sentence in re.split(r"(?<=[.!?;])\s+", normalise(text)):
        fronted = _FRONTED.match(sentence)
        whole = f"{fronted[3]} {fronted[1]}{fronted[2]}" if fronted else sentence
        words += [word for clause in _clauses(whole) for word in _listed(clause)]
    kept = [_stem(w) for w in words if w not in _LITTLE | _ADVERBS | _EMPHASIS]
    for i in range(1, len(kept) - 1):  # "name and age" is "age and name"
        if kept[i] in ("and", "or") and kept[i - 1] > kept[i + 1]:
            kept[i - 1], kept[i + 1] = kept[i + 1], kept[i - 1]
    return tuple(kept)


def _clauses(sentence: str) -> list[str]:
    """What is done, in its order: first what is "first", last what is "later"; "y after x" is "x before y"."""
    if after := _AFTER.match(sentence):
        return [after[2], "before", after[1]]

    def place(clause: str) -> int:
        said = set(_listed(clause))
        return 0 if "first" in said else 2 if said & {"last", "later", "afterwards", "finally"} else 1

    return sorted(sentence.split(","), key=place)


def _numbers(words: frozenset[str]) -> set[str]:
    return {_NUMBERS.get(w, w) for w in words if w in _NUMBERS or re.fullmatch(r"-?\d+(?:[.,]\d+)?%?", w)}


def _share(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0
