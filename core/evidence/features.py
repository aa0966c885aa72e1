"""Feature: something true or false of one rollout that can be counted and said in words.

Features describe *how* a rollout answered or acted, never *what* the right answer is: words that occur in
the answers of the tasks are masked before words are counted (DESIGN 2.5: never leaks answers).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from core.evidence.instructions import without_material
from core.rollout import Rollout, Task

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

MAX_WORD_FEATURES = 60
"""Words of one answer that are looked at; later ones are chatter."""


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


def features_of(task: Task, rollout: Rollout, masked: Set[str] = frozenset()) -> dict[str, Feature]:
    """The features that hold for one rollout, by name.

    Args:
        task: what it tried; its answer is masked in any case.
        rollout: one attempt.
        masked: lower-case words that must not become features (`masked_words` of the whole batch).
    """
    from core.evidence.tool_features import tool_features

    hidden = masked | masked_words([task])
    found = [*answer_features(task, rollout), *word_features(rollout.trajectory.answer, hidden)]
    if rollout.trajectory.steps:
        found += tool_features(task, rollout, hidden)
    return {f.name: f for f in found}


# --- the form of an answer ---------------------------------------------------------------------------

_SURE = re.compile(
    r"(?i)^\W*(sure|certainly|of course|absolutely|okay|ok|yes, |well|great|here is|here's|here are|"
    r"the answer is|the correct answer|the final answer|answer:|final answer|based on|to answer|to find|"
    r"to solve|"
    r"let me|let's|i think|i believe|i would|i'm|as an ai|as a |in this )"
)
_HEDGE = re.compile(
    r"(?i)\b(maybe|perhaps|possibly|probably|might be|could be|may be|either|or it|not sure|unsure|likely|"
    r"it depends|alternatively|however|but|although|though|somewhat)\b"
)
_WHY = re.compile(r"(?i)\b(because|since|as it|as the|therefore|thus|so the|so it|which means|due to)\b")
_REFUSAL = re.compile(
    r"(?i)\b(i'm sorry|i am sorry|i apologi[sz]e|as an ai|as a text-based|i cannot|i can't|unable to)\b"
)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_NUMBER_WORD = re.compile(
    r"(?i)\b(zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|"
    r"nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)\b"
)
_FENCE = re.compile(r"```")
_MARKDOWN = re.compile(r"(?m)\*\*|^#{1,6} |^\s*(?:[-*]|\d+[.)]) ")
_SENTENCE_END = re.compile(r"[.!?](?=\s+\S)")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "«": "»"}


def answer_features(task: Task, rollout: Rollout) -> list[Feature]:
    """Length, opening, ending, number, JSON, case and layout of the final answer."""
    text = rollout.trajectory.answer.strip()
    cut = rollout.trajectory.finish_reason == "length"
    found = [Feature("cut", "were cut off by the token limit", "cut", 90)] if cut else []
    if not text:
        return [*found, Feature("empty", "gave an empty answer", "length", 5)]
    found += _length(text, cut)
    found += _opening(text, task.question)
    found += _ending(text, cut)
    found += _numbers(text)
    found += _json(text, task.question)
    found += _layout(text)
    found += _choices(text, task)
    return found


def _length(text: str, cut: bool) -> list[Feature]:
    words = len(text.split())
    table = [
        (words == 1 and not cut, Feature("one_word", "answered with one word", "length", 1)),
        (words <= 3 and not cut, Feature("up_to_3_words", "answered in at most three words", "length", 2)),
        (words > 10, Feature("over_10_words", "used more than ten words", "length", 4)),
        (words > 20, Feature("over_20_words", "used more than twenty words", "length", 3)),
        (
            bool(_SENTENCE_END.search(text)),
            Feature("several_sentences", "wrote several sentences", "length", 5),
        ),
        ("\n" in text, Feature("several_lines", "wrote several lines", "length", 6)),
        (bool(_WHY.search(text)), Feature("explains", "added an explanation", "length", 7)),
    ]
    return [feature for holds, feature in table if holds]


def _opening(text: str, question: str) -> list[Feature]:
    found = []
    if _SURE.match(text):
        found.append(Feature("preamble", "opened with a preamble", "opening", 11))
    if re.match(r"(?i)^\W*(the|this|that|it|there)\b", text):
        found.append(Feature("opens_as_sentence", 'opened with "The", "This" or the like', "opening", 14))
    asked = without_material(question)
    if _restates(text, asked):
        found.append(Feature("restates_question", "restated the question", "opening", 12))
    elif _restates(text, question):
        found.append(Feature("repeats_text", "repeated the given text", "opening", 13))
    if _REFUSAL.search(text):
        found.append(Feature("refuses", "apologised or refused", "opening", 10))
    return found


def _restates(text: str, question: str) -> bool:
    """At least three words of the question in their order stand in the answer (JSON aside)."""
    if text.startswith(("{", "[")):
        return False
    asked, said = _words(question), _words(text)
    grams = {tuple(asked[i : i + 3]) for i in range(len(asked) - 2)}
    return any(tuple(said[i : i + 3]) in grams for i in range(len(said) - 2))


def _ending(text: str, cut: bool) -> list[Feature]:
    if cut:
        return []  # how a cut answer ends says nothing of the habit
    found = []
    if text.endswith("."):
        found.append(Feature("final_period", "ended with a period", "ending", 20))
    if text[-1] in ".!?:;,…":
        found.append(Feature("final_punctuation", "ended with punctuation", "ending", 21))
    if text.endswith("?"):
        found.append(Feature("asks_back", "asked a question back", "ending", 22))
    return found


def _numbers(text: str) -> list[Feature]:
    found = []
    numbers = _NUMBER.findall(text)
    if _NUMBER.fullmatch(text.rstrip(".")):
        found.append(Feature("number_only", "gave the number alone", "number", 0))
    elif re.fullmatch(r"[-+$€£]?\d[\d,.]*\s*[^\W\d]+\.?", text):
        found.append(Feature("number_with_unit", "gave the number with a unit", "number", 24))
    if numbers:
        found.append(Feature("has_number", "wrote a number in digits", "number", 25))
    elif _NUMBER_WORD.search(text):
        found.append(Feature("number_words", "wrote the number in words", "number", 23))
    if len(set(numbers)) > 1:
        found.append(Feature("several_numbers", "wrote several numbers", "number", 26))
    if re.search(r"\d\s*[-+*/x×=]\s*\d", text):
        found.append(Feature("shows_sum", "wrote the calculation out", "number", 27))
    return found


def _json(text: str, question: str) -> list[Feature]:
    found = []
    fenced = bool(_FENCE.search(text))
    if fenced:
        found.append(Feature("code_fence", "used a code fence", "json", 31))
    value = _parsed(text)
    if value is not None:
        found.append(Feature("json_only", "answered with JSON alone", "json", 30))
    else:
        inner = next((v for m in re.finditer(r"\{[^{}]*\}", text) if (v := _parsed(m[0])) is not None), None)
        if inner is not None:
            found.append(Feature("json_in_prose", "wrapped the JSON in other text", "json", 32))
            value = inner
    keys = set(value) if isinstance(value, dict) else set()
    if keys and all(_stands_in(k, question) for k in keys):
        found.append(Feature("json_keys_asked", "used the keys that the question names", "json", 33))
    elif keys:
        found.append(Feature("json_other_keys", "used keys that the question does not name", "json", 34))
    return found


def _parsed(text: str) -> dict[str, Any] | list[Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _layout(text: str) -> list[Feature]:
    letters = [c for c in text if c.isalpha()]
    first = text[0]
    table = [
        (
            bool(letters) and all(c.islower() for c in letters),
            Feature("all_lower", "wrote in lower case", "case", 40),
        ),
        (
            len(letters) > 1 and all(c.isupper() for c in letters),
            Feature("all_upper", "wrote in capitals", "case", 41),
        ),
        (first.isupper(), Feature("starts_capital", "began with a capital letter", "case", 42)),
        (bool(_HEDGE.search(text)), Feature("hedges", "hedged or qualified the answer", "hedging", 15)),
        (
            len(text) > 2 and _QUOTES.get(first) == text.rstrip(".")[-1:],
            Feature("quoted", "put the answer in quotes", "layout", 35),
        ),
        (bool(_MARKDOWN.search(text)), Feature("markdown", "used Markdown or a list", "layout", 36)),
    ]
    return [feature for holds, feature in table if holds]


def _choices(text: str, task: Task) -> list[Feature]:
    """Where a task has choices: whether several are named, or none of those that the question offers."""
    choices = {c.lower() for c in _choices_of(task.verifier.options)}
    if len(choices) < 2:
        return []
    said = {c for c in choices if _stands_in(c, text.lower())}
    if len(said) > 1:
        return [Feature("several_choices", "named more than one of the choices", "hedging", 16)]
    if not said and all(_stands_in(c, task.question.lower()) for c in choices):
        return [Feature("outside_choices", "named none of the choices in the question", "hedging", 17)]
    return []


def _choices_of(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner) if key == "choices" else _choices_of(inner)


def _stands_in(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


# --- words -------------------------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())


def word_features(text: str, masked: Set[str]) -> list[Feature]:
    """Words and word pairs of an answer, without masked ones and without numbers."""
    said = [w if w not in masked and not w[0].isdigit() else "" for w in _words(text)[:MAX_WORD_FEATURES]]
    singles = {w for w in said if w}
    pairs = {f"{a} {b}" for a, b in pairwise(said) if a and b}
    return [
        Feature(f"word={gram}", f'said "{gram}"', "word", 80 if gram in singles else 81, gram)
        for gram in sorted(singles | pairs)
    ]


def masked_words(tasks: Iterable[Task]) -> frozenset[str]:
    """Lower-case words that occur in answers, choices or labels of the tasks."""
    return frozenset(w for task in tasks for text in answers_of(task) for w in _words(text))


def answers_of(task: Task) -> list[str]:
    """Every text that could be a right answer of a task, choices and labels included; none is empty."""
    value = _parsed(task.answer) if task.answer else None
    texts = [task.answer or ""] if value is None else list(_leaves(value))
    texts += _given_answers(task.verifier.options)
    return [t for t in texts if t.strip()]


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
