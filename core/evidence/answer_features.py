"""How an answer is written: its length, opening, ending, numbers, JSON, case and layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from core.evidence.features import Feature, Theme, choices_of, masked_words, parsed, stands_in, words_of
from core.evidence.instructions import without_material
from core.rollout import Task, Trajectory

LOOKED_AT = 1_500
"""Characters of an answer that its form is read from; all that follow are only more of the same."""

MAX_WORDS_LOOKED_AT = 60
"""Words of one answer that are looked at; later ones are chatter."""

MAX_WORD_LENGTH = 24
"""Longer runs of letters are data, not words."""

Gram = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the answers to one task are held against."""

    question: str
    grams: frozenset[Gram]
    """Every three words in a row of the question, without the material that it is about."""
    material_grams: frozenset[Gram]
    """Those of the whole question."""
    choices: frozenset[str]
    """In lower case; empty where the task offers fewer than two."""
    choices_told: bool
    """Whether the question names them all."""
    masked: frozenset[str]
    """Words of its answers, in lower case: they never become features."""

    @classmethod
    def of(cls, task: Task) -> Asked:
        choices = frozenset(c.lower() for c in choices_of(task.verifier.options))
        question = task.question.lower()
        return cls(
            question=task.question,
            grams=frozenset(_grams(without_material(task.question))),
            material_grams=frozenset(_grams(task.question)),
            choices=choices if len(choices) > 1 else frozenset(),
            choices_told=all(stands_in(c, question) for c in choices),
            masked=masked_words([task]),
        )


class _Form(NamedTuple):
    label: str
    theme: Theme
    rank: int


_FORMS: Mapping[str, _Form] = {
    "number_only": _Form("gave the number alone", "number", 0),
    "json_only": _Form("answered with JSON alone", "json", 0),
    "one_word": _Form("answered with one word", "length", 1),
    "up_to_3_words": _Form("answered in at most three words", "length", 2),
    "over_20_words": _Form("used more than twenty words", "length", 3),
    "code_fence": _Form("used a code fence", "json", 3),
    "over_10_words": _Form("used more than ten words", "length", 4),
    "several_sentences": _Form("wrote several sentences", "length", 5),
    "empty": _Form("gave an empty answer", "length", 5),
    "several_lines": _Form("wrote several lines", "length", 6),
    "explains": _Form("added an explanation", "length", 7),
    "refuses": _Form("apologised or refused", "opening", 10),
    "preamble": _Form("opened with a preamble", "opening", 11),
    "restates_question": _Form("restated the question", "opening", 12),
    "repeats_text": _Form("repeated the given text", "opening", 13),
    "opens_as_sentence": _Form('opened with "The", "This" or the like', "opening", 14),
    "hedges": _Form("hedged or qualified the answer", "hedging", 15),
    "several_choices": _Form("named more than one of the choices", "hedging", 16),
    "outside_choices": _Form("named none of the choices in the question", "hedging", 17),
    "final_period": _Form("ended with a period", "ending", 20),
    "final_punctuation": _Form("ended with punctuation", "ending", 21),
    "asks_back": _Form("asked a question back", "ending", 22),
    "number_words": _Form("wrote the number in words", "number", 23),
    "number_with_unit": _Form("gave the number with a unit", "number", 24),
    "has_number": _Form("wrote a number in digits", "number", 25),
    "several_numbers": _Form("wrote several numbers", "number", 26),
    "shows_sum": _Form("wrote the calculation out", "number", 27),
    "json_in_prose": _Form("wrapped the JSON in other text", "json", 32),
    "json_keys_asked": _Form("used the keys that the question names", "json", 33),
    "json_other_keys": _Form("used keys that the question does not name", "json", 34),
    "quoted": _Form("put the answer in quotes", "layout", 35),
    "markdown": _Form("used Markdown or a list", "layout", 36),
    "all_lower": _Form("wrote in lower case", "case", 40),
    "all_upper": _Form("wrote in capitals", "case", 41),
    "starts_capital": _Form("began with a capital letter", "case", 42),
    "cut": _Form("were cut off by the token limit", "cut", 90),
}

FORMS: Mapping[str, Feature] = {
    name: Feature(name, form.label, form.theme, form.rank) for name, form in _FORMS.items()
}
"""Every feature of an answer's form, by name."""

# these look at the text in lower case: that is twice as fast as ignoring the case
_SURE = re.compile(
    r"\W*(sure|certainly|of course|absolutely|okay|ok|yes, |well|great|here is|here's|here are|"
    r"the answer is|the correct answer|the final answer|answer:|final answer|based on|to answer|to find|"
    r"to solve|"
    r"let me|let's|i think|i believe|i would|i'm|as an ai|as a |in this )"
)
_SENTENCE = re.compile(r"\W*(the|this|that|it|there)\b")
_HEDGE = re.compile(
    r"\b(maybe|perhaps|possibly|probably|might be|could be|may be|either|or it|not sure|unsure|likely|"
    r"it depends|alternatively|however|but|although|though|somewhat)\b"
)
_WHY = re.compile(r"\b(because|since|as it|as the|therefore|thus|so the|so it|which means|due to)\b")
_REFUSAL = re.compile(
    r"\b(i'm sorry|i am sorry|i apologi[sz]e|as an ai|as a text-based|i cannot|i can't|unable to)\b"
)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_NUMBER_UNIT = re.compile(r"[-+$€£]?\d[\d,.]*\s*[^\W\d]+\.?")
_NUMBER_WORD = re.compile(
    r"\b(zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|"
    r"nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)\b"
)
_SUM = re.compile(r"\d\s*[-+*/x×=]\s*\d")
_BRACES = re.compile(r"\{[^{}]*\}")
_MARKDOWN = re.compile(r"(?m)\*\*|^#{1,6} |^\s*(?:[-*]|\d+[.)]) ")
_SENTENCE_END = re.compile(r"[.!?](?=\s+\S)")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»"}


def answer_features(asked: Asked, trajectory: Trajectory) -> list[Feature]:
    """The features of the final answer's form."""
    return [FORMS[name] for name in _names(asked, trajectory)]


def _names(asked: Asked, trajectory: Trajectory) -> Iterator[str]:
    whole = trajectory.answer.strip()
    text = whole[:LOOKED_AT]
    cut = trajectory.finish_reason == "length"
    if cut:
        yield "cut"
    if not text:
        yield "empty"
        return
    lower = text.lower()
    yield from _length(text, cut)
    yield from _wording(lower, asked)
    if not cut:  # how a cut answer ends says nothing of the habit
        yield from _ending(whole)
    yield from _numbers(text, lower)
    yield from _json(whole, asked.question)
    yield from _layout(text, whole)
    yield from _choices(lower, asked)


def _length(text: str, cut: bool) -> Iterator[str]:
    words = len(text.split())
    if words <= 3 and not cut:
        yield "up_to_3_words"
        if words == 1:
            yield "one_word"
    if words > 10:
        yield "over_10_words"
    if words > 20:
        yield "over_20_words"
    if _SENTENCE_END.search(text):
        yield "several_sentences"
    if "\n" in text:
        yield "several_lines"


def _wording(text: str, asked: Asked) -> Iterator[str]:
    """Of a text in lower case."""
    if _SURE.match(text):
        yield "preamble"
    if _SENTENCE.match(text):
        yield "opens_as_sentence"
    if not text.startswith(("{", "[")):  # JSON restates nothing
        said = set(_grams(text))
        if not said.isdisjoint(asked.grams):
            yield "restates_question"
        elif not said.isdisjoint(asked.material_grams):
            yield "repeats_text"
    if _REFUSAL.search(text):
        yield "refuses"
    if _HEDGE.search(text):
        yield "hedges"
    if _WHY.search(text):
        yield "explains"


def _grams(text: str) -> Iterator[Gram]:
    words = words_of(text)
    return zip(words, words[1:], words[2:], strict=False)


def _ending(text: str) -> Iterator[str]:
    if text.endswith("."):
        yield "final_period"
    if text[-1] in ".!?:;,…":
        yield "final_punctuation"
    if text.endswith("?"):
        yield "asks_back"


def _numbers(text: str, lower: str) -> Iterator[str]:
    numbers = _NUMBER.findall(text)
    if _NUMBER.fullmatch(text.rstrip(".")):
        yield "number_only"
    elif _NUMBER_UNIT.fullmatch(text):
        yield "number_with_unit"
    if numbers:
        yield "has_number"
    elif _NUMBER_WORD.search(lower):
        yield "number_words"
    if len(set(numbers)) > 1:
        yield "several_numbers"
    if _SUM.search(text):
        yield "shows_sum"


def _json(text: str, question: str) -> Iterator[str]:
    if "```" in text[:LOOKED_AT]:
        yield "code_fence"
    value = parsed(text)
    if value is not None:
        yield "json_only"
    else:
        inner = (v for m in _BRACES.finditer(text[:LOOKED_AT]) if (v := parsed(m[0])) is not None)
        value = next(inner, None)
        if value is not None:
            yield "json_in_prose"
    if isinstance(value, dict) and value:
        yield "json_keys_asked" if all(stands_in(k, question) for k in value) else "json_other_keys"


def _layout(text: str, whole: str) -> Iterator[str]:
    if text.islower():
        yield "all_lower"
    if text.isupper() and sum(map(str.isalpha, text)) > 1:
        yield "all_upper"
    if text[0].isupper():
        yield "starts_capital"
    if len(text) > 2 and _QUOTES.get(text[0]) == whole.rstrip(".")[-1:]:
        yield "quoted"
    if _MARKDOWN.search(text):
        yield "markdown"


def _choices(text: str, asked: Asked) -> Iterator[str]:
    """Of a text in lower case: whether it names several of the choices, or none of those that the question offers."""
    if not asked.choices:
        return
    said = sum(stands_in(c, text) for c in asked.choices)
    if said > 1:
        yield "several_choices"
    if not said and asked.choices_told:
        yield "outside_choices"


# --- words -------------------------------------------------------------------------------------------


class Words(NamedTuple):
    """The words of one answer that are counted; each once."""

    singles: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    """Words that follow each other."""


def counted_words(answer: str, masked: frozenset[str] = frozenset()) -> Words:
    """Words and word pairs of an answer, without masked ones and without whatever holds a digit."""
    said = words_of(answer[:LOOKED_AT])[:MAX_WORDS_LOOKED_AT]
    said = [w if w not in masked and len(w) <= MAX_WORD_LENGTH and not _DIGIT.search(w) else "" for w in said]
    pairs = ((a, b) for a, b in pairwise(said) if a and b)
    return Words(tuple(dict.fromkeys(w for w in said if w)), tuple(dict.fromkeys(pairs)))


_DIGIT = re.compile(r"\d")


def word_feature(gram: str) -> Feature:
    """The feature of a word, or of two words with a space between them."""
    return Feature(f"word={gram}", f'said "{gram}"', "word", 81 if " " in gram else 80, gram)
