"""What a question itself asks of the form of its answer, and what advice would go against that.

A small parser of the usual wordings ("Answer with the name of the city only", "in one word", "explain"). It
need not understand every instruction: what it does not see forbids nothing, and the trial decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Demand = Literal[
    "alone",
    "one_word",
    "number_only",
    "json",
    "no_json",
    "code",
    "sentence",
    "long",
    "list",
    "explanation",
    "no_explanation",
    "brief",
    "no_code",
    "lower",
    "upper",
    "capital",
    "period",
    "no_period",
    "digits",
    "number_words",
    "quotes",
    "no_quotes",
    "unit",
    "ask",
]
"""Something that a question can demand of an answer, or that a lesson can advise."""

_ALONE = re.compile(
    r"(?i)\b(?:answer|reply|respond|give|write|return|output|state|name|say|provide|print)\b(?: \w+){0,2}? "
    r"(?:with |in |by )?(?:only |just |nothing but |exactly )?(?P<noun>(?:the|a|an|one|its|their)\b[^.,:;!?\n]*?)"
    r"(?: only| alone| and nothing else| by itself)(?=\W*(?:$|[\n.,:;!?]))|"
    r"\b(?:only|just|nothing but)\b(?: (?:answer|reply|respond|give|write|return|output|state|print|provide))?"
    r"(?: with)? (?P<noun2>(?:the|a|an|one|its)\b[^.,:;!?\n]*)"
)
_FORM_WORDS = re.compile(
    r"(?i)\b(?:answer|reply|respond|give|write|return|output|state|provide|print|use|explain|show|do not|don't|"
    r"only|format|include)\b"
)

_PATTERNS: Mapping[Demand, str] = {
    "one_word": r"\b(?:one|a single|1)[ -]word\b(?! (?:per|for each))",
    "number_only": r"\b(?:(?:only|just) (?:the|a|one) (?:number|digits?|integer|value)|"
    r"the (?:number|integer|value) (?:only|alone)|(?:digits|numerals|figures) (?:only|alone))\b",
    "json": r"\bjson\b",
    "code": r"\bcode (?:block|fence)|\bmarkdown\b|```|\bwrite (?:a|the) (?:function|program|script|code)\b",
    "sentence": r"\b(?:in|as|with|using|write|form|give)(?: an?| one)?"
    r"(?: full| complete| whole| proper| single| short)* sentences?\b|\b(?:full|complete|whole) sentences?\b",
    "long": r"\b(?:at least (?:\w+ )?(?:words|sentences)|in detail|detailed|paragraphs?|essay|elaborate|"
    r"long answer|several sentences|(?:two|three|four|five|\d+) sentences)\b",
    "list": r"\b(?:list (?:all|the|three|two|five|\d+)|bullet|bulleted|numbered list|as a list)\b",
    "explanation": r"\b(?:explain|justify|explanation|give (?:a |your )?reasons?|"
    r"show (?:your|the) (?:work|working|steps|reasoning)|step by step|why|how do you know)\b",
    "brief": r"\b(?:brief(?:ly)?|concise(?:ly)?|short (?:answer|sentence)|keep (?:it|the answer) short|"
    r"(?:under|at most|fewer than|no more than) (?:\w+) words|one line|one short sentence|first sentence)\b",
    "lower": r"\b(?:lower[- ]?case|small letters)\b",
    "upper": r"\b(?:upper[- ]?case|all caps|capital letters|block letters)\b",
    "capital": r"\b(?:capitali[sz]ed|begin with a capital|initial capital)\b",
    "period": r"\b(?:(?:end|close) (?:it |(?:the|your|each) answer |answers )?with a (?:period|full stop)|"
    r"final (?:period|full stop)|"
    r"with (?:a )?punctuation)\b",
    "digits": r"\b(?:in|as|with|using|use) (?:digits|numerals|figures)\b",
    "number_words": r"\b(?:spell(?:ed)? (?:it |the number )?out|number in words|in words)\b",
    "quotes": r"\b(?:in|with|between) (?:double |single )?(?:quotes|quotation marks)\b",
    "unit": r"\b(?:with (?:its|the|their) units?|include (?:the )?units?)\b",
    "ask": r"\b(?:ask (?:me|a question|for)|clarifying question)\b",
}
_NEGATED: Mapping[Demand, tuple[str, Demand]] = {
    "json": (r"\bjson\b", "no_json"),
    "explanation": (r"\b(?:explain|explaining|explanations?|reasoning|justify)\b", "no_explanation"),
    "period": (r"\b(?:period|full stop|punctuation)\b", "no_period"),
    "quotes": (r"\b(?:quotes|quotation marks)\b", "no_quotes"),
    "sentence": (r"\b(?:full )?sentences?\b", "alone"),
    "code": (r"\b(?:code (?:fence|block)|markdown)\b", "no_code"),
}
"""What "no", "not" or "without" before a word demands."""
_NOT = re.compile(r"(?i)\b(?:no|not|don't|never|without|nor)\b[^.,;:!?\n]{0,24}$")

_AGAINST: Mapping[Demand, frozenset[Demand]] = {
    "alone": frozenset({"sentence", "long", "list", "explanation", "json", "code"}),
    "one_word": frozenset({"sentence", "long", "list", "explanation", "json", "code", "unit"}),
    "number_only": frozenset(
        {"sentence", "long", "list", "explanation", "json", "code", "number_words", "unit"}
    ),
    "json": frozenset({"no_json", "one_word", "number_only", "sentence", "alone"}),
    "no_json": frozenset({"json"}),
    "code": frozenset({"alone", "one_word", "number_only", "sentence", "json"}),
    "sentence": frozenset({"alone", "one_word", "number_only", "json", "code"}),
    "long": frozenset({"alone", "one_word", "number_only", "json", "sentence", "no_explanation"}),
    "list": frozenset({"alone", "one_word", "number_only", "json", "sentence"}),
    "explanation": frozenset({"alone", "one_word", "number_only", "json", "no_explanation"}),
    "no_explanation": frozenset({"explanation", "long"}),
    "brief": frozenset({"long", "explanation", "list"}),
    "no_code": frozenset({"code", "list"}),
    "lower": frozenset({"upper", "capital"}),
    "upper": frozenset({"lower", "capital"}),
    "capital": frozenset({"lower", "upper"}),
    "period": frozenset({"no_period", "alone", "one_word", "number_only", "json"}),
    "no_period": frozenset({"period", "sentence", "long"}),
    "digits": frozenset({"number_words"}),
    "number_words": frozenset({"digits", "number_only"}),
    "quotes": frozenset({"no_quotes", "alone", "one_word", "number_only"}),
    "no_quotes": frozenset({"quotes", "json"}),
    "unit": frozenset({"number_only", "alone"}),
    "ask": frozenset({"alone", "one_word", "number_only", "json"}),
}
"""What each advice goes against; `conflicts` looks both ways."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What one question demands."""

    demands: frozenset[Demand]
    noun: str = ""
    """What is asked for alone, in the question's own words: "the name of the city"."""


def read_instruction(question: str) -> Instruction:
    """Parse a question's demands on the form of its answer. Quoted material is not part of it.

    >>> read_instruction("What is the capital of Peru? Answer with the name of the city only.").noun
    'the name of the city'
    >>> sorted(read_instruction("Is it raining? Answer in a full sentence.").demands)
    ['sentence']
    """
    asked = without_material(question)
    demands = {demand for demand, pattern in _PATTERNS.items() if _asks(asked, pattern, negated=False)}
    demands |= {unwanted for pattern, unwanted in _NEGATED.values() if _asks(asked, pattern, negated=True)}
    noun = ""
    if "json" in demands:
        demands.discard("number_only")
    elif found := _ALONE.search(asked):
        noun = " ".join((found["noun"] or found["noun2"]).lower().split()).removesuffix(" only")
        if not re.match(r"(?:a|one|an?) (?:\w+ )?sentences?\b", noun):
            demands.add("alone")
    return Instruction(frozenset(demands), noun if "alone" in demands else "")


def _asks(asked: str, pattern: str, *, negated: bool) -> bool:
    found = re.finditer(pattern, asked, re.IGNORECASE)
    return any((_NOT.search(asked[: m.start()]) is not None) == negated for m in found)


def without_material(question: str) -> str:
    """The question without what it is about: quoted texts and code blocks."""
    plain = re.sub(r"```.*?```", " ", question, flags=re.DOTALL)
    return re.sub(r'"[^"]{12,}"|“[^”]{12,}”|«[^»]{12,}»', " ", plain)


def is_instruction(sentence: str) -> bool:
    """Whether a sentence of a question is about the form of the answer and not about the matter."""
    return bool(_FORM_WORDS.match(sentence.strip())) or bool(_ALONE.search(sentence))


def conflicts(advice: frozenset[Demand], instruction: Instruction) -> frozenset[Demand]:
    """Demands of the question that the advice goes against; empty where they agree."""
    return frozenset(
        asked
        for asked in instruction.demands
        for advised in advice
        if asked != advised
        and (asked in _AGAINST[advised] or advised in _AGAINST[asked])
        and advised not in instruction.demands
    )
