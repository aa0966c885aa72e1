"""What the live library already says on the subject of a new lesson, and what the evidence says against it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from core.evidence import Contrast
from core.evidence.instructions import Demand, Instruction, conflicts, read_instruction
from core.experience import Delete, Experience, Finding
from core.extraction.sayings import Names, sayings, spoken
from core.extraction.sentences import Advice
from core.words import normalise


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


def nearest(text: str, advice: Advice, live: Sequence[Experience], names: Names) -> Near | None:
    """The live experience of the same domain that a new lesson repeats, refines or opposes, if any."""
    for experience in live:
        if normalise(experience.text) == normalise(text):
            return Near(experience, True, "the same text after normalisation")
    if advice.subject == "form":
        return _nearest_form(text, advice, live)
    return _nearest_tool(text, live, names)


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


def _nearest_tool(text: str, live: Sequence[Experience], names: Names) -> Near | None:
    new = _said(text, names)
    for experience in live:
        said = _said(experience.text, names)
        shared = new.keys() & said.keys()
        if not shared:
            continue
        if any(new[key] != said[key] for key in shared):
            return Near(experience, False, f"{experience.id} advises otherwise on the same.")
        if new.keys() <= said.keys():
            return Near(experience, True, "it already advises this")
    return None


def _said(text: str, names: Names) -> dict[tuple[str, ...], set[tuple[object, ...]]]:
    """By subject; what to do after one and the same error is one subject."""
    said: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
    for subject, features, do in sayings(text, names):
        if subject[0] != "form":
            said.setdefault(subject[:3], set()).add((subject[3:], features, do))
    return said


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
        said = spoken(experience.text, contrast)
        against = tuple(one.finding for one in said if one.sure and not one.agrees)
        if against and not any(one.agrees for one in said):
            found.append(
                Contradicted(
                    Delete(experience_id=experience.id),
                    against,
                    f"Rollouts that follow {experience.id} lose against their own group.",
                )
            )
    return found
