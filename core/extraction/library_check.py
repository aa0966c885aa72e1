"""What the live library already says on the subject of a new lesson, and what the evidence says against it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from core.evidence import Contrast
from core.evidence.instructions import Demand, Instruction, conflicts, read_instruction
from core.experience import Delete, Experience, Finding
from core.extraction.sentences import Advice
from core.words import normalise

STRONG = 0.05
"""Corrected p under which evidence against a live lesson is enough to propose its deletion."""


@dataclass(frozen=True, slots=True)
class Near:
    """A live experience on the subject of a new lesson."""

    experience: Experience
    same: bool
    """Whether it already says as much; else it says the opposite or something else."""
    why: str


@dataclass(frozen=True, slots=True)
class Contradicted:
    """A live experience whose followers lose."""

    operation: Delete
    findings: tuple[Finding, ...]
    rationale: str


_SUBJECTS: tuple[frozenset[Demand], ...] = (
    frozenset(
        {"alone", "one_word", "number_only", "sentence", "brief", "long", "explanation", "no_explanation"}
    ),
    frozenset({"period", "no_period"}),
    frozenset({"json", "no_json"}),
    frozenset({"code", "no_code"}),
    frozenset({"digits", "number_words"}),
    frozenset({"lower", "upper", "capital"}),
    frozenset({"quotes", "no_quotes"}),
)
"""Demands on one and the same property of an answer."""

_SHOWN_BY: Mapping[Demand, tuple[str, bool]] = {
    "one_word": ("one_word", True),
    "alone": ("up_to_3_words", True),
    "number_only": ("number_only", True),
    "json": ("json_only", True),
    "sentence": ("restates_question", True),
    "brief": ("over_20_words", False),
    "long": ("over_20_words", True),
    "explanation": ("explains", True),
    "no_explanation": ("explains", False),
    "period": ("final_period", True),
    "no_period": ("final_period", False),
    "no_code": ("code_fence", False),
    "digits": ("has_number", True),
    "number_words": ("number_words", True),
    "lower": ("all_lower", True),
    "upper": ("all_upper", True),
    "quotes": ("quoted", True),
    "no_quotes": ("quoted", False),
}
"""The feature that shows that a rollout follows a demand (True) or by lacking it (False)."""


def nearest(text: str, advice: Advice, live: Sequence[Experience]) -> Near | None:
    """The live experience of the same domain that a new lesson repeats, refines or opposes, if any."""
    for experience in live:
        if normalise(experience.text) == normalise(text):
            return Near(experience, True, "the same text after normalisation")
    if advice.subject == "form":
        return _nearest_form(text, advice, live)
    return _nearest_tool(text, live)


def _nearest_form(text: str, advice: Advice, live: Sequence[Experience]) -> Near | None:
    new = read_instruction(text).demands | advice.demands
    for experience in live:
        said = read_instruction(experience.text).demands
        if against := conflicts(new, Instruction(said)):
            words = ", ".join(sorted(against)).replace("_", " ")
            return Near(experience, False, f"{experience.id} advises the opposite ({words}).")
        if not _touch(new, said):
            continue
        if new <= said:
            return Near(experience, True, "it already advises this")
        return Near(experience, False, f"{experience.id} speaks of the same and says less.")
    return None


def _touch(a: Set[Demand], b: Set[Demand]) -> bool:
    return any(a & subject and b & subject for subject in _SUBJECTS)


_SAYINGS: tuple[tuple[str, str], ...] = (
    ("start", r"\b(?:call|use|start with|begin with) `?(?P<a>[\w.]+)`?(?: first\b|$|[.,;])"),
    ("use", r"\b(?:use|call) `?(?P<a>\w+_\w+|[\w.]+(?=`))`?"),
    ("order", r"\bcall `?(?P<a>[\w.]+)`? (?:before|after|right after) `?(?P<b>[\w.]+)`?"),
    ("set", r"\bcall `?(?P<a>[\w.]+)`? with `?(?P<b>\w+)="),
    ("after an error", r"\bwhen (?:a call|`?(?P<a>[\w.]+)`?) fails\b(?: with (?P<b>\w+))?"),
)
_NOT = re.compile(r"(?i)\b(?:do not|don't|never|avoid|not)\b[^.,;:]{0,12}$")


def tool_sayings(text: str) -> dict[tuple[str, ...], tuple[str, bool]]:
    """What a lesson says of tools: {subject: (object, do)}; different values oppose each other."""
    said: dict[tuple[str, ...], tuple[str, bool]] = {}
    for name, pattern in _SAYINGS:
        for m in re.finditer(pattern, text, re.IGNORECASE):
            a, b = (m["a"] or "", m["b"] or "" if "b" in m.re.groupindex else "")
            do = not _NOT.search(text[: m.start()])
            if name == "start" and "first" in m[0].lower() + text[m.end() : m.end() + 1]:
                said["start",] = (a, do)
            elif name == "order":
                said[("order", *sorted((a, b)))] = (a, do)
            elif name == "after an error":
                said["after an error", a, b] = (normalise(text[m.end() :]), True)
            elif name != "start":
                said[name, a, b] = ("", do)
    return said


def _nearest_tool(text: str, live: Sequence[Experience]) -> Near | None:
    new = tool_sayings(text)
    for experience in live:
        said = tool_sayings(experience.text)
        shared = new.keys() & said.keys()
        if not shared:
            continue
        if all(new[key] == said[key] for key in new if key in said) and new.keys() <= said.keys():
            return Near(experience, True, "it already advises this")
        if any(new[key] != said[key] for key in shared):
            return Near(experience, False, f"{experience.id} advises otherwise on the same.")
    return None


def contradicted(live: Sequence[Experience], contrast: Contrast, changed: Set[str]) -> list[Contradicted]:
    """Live experiences whose followers lose in these groups: every demand that was seen points the wrong way.

    Args:
        live: live experiences of the domain.
        contrast: the domain's contrast.
        changed: ids of those that a draft changes already.
    """
    found = []
    for experience in live:
        if experience.id in changed:
            continue
        seen = [
            (finding, (gain > 0) == do)
            for demand in sorted(read_instruction(experience.text).demands & _SHOWN_BY.keys())
            for feature, do in [_SHOWN_BY[demand]]
            if (finding := contrast.finding(feature)) is not None
            and (gain := contrast.gain_of(feature)) is not None
        ]
        against = tuple(f for f, agrees in seen if not agrees and f.p_corrected < STRONG)
        if against and not any(agrees for _, agrees in seen):
            found.append(
                Contradicted(
                    Delete(experience_id=experience.id),
                    against,
                    f"Rollouts that follow {experience.id} lose against their own group.",
                )
            )
    return found
