"""Credit: whether a lesson helped, told by contrasts within groups, and what that does to its confidence (DESIGN 2.7).

All rollouts of a group carry the same library, so that a lesson was there when things went well says nothing. What
tells is a *contrast*: rollouts that follow the lesson against siblings, on the same task, that do not.

1. A *use* = in one group (or one entry of a usage log) the lesson was injected, and at least one rollout followed it.
2. A use is *better* where the followers earned more on average than the others, *worse* where they earned less;
   without others, without rewards, or with equal means it is neither.
3. A *win* = a better use. Only better and worse uses move the confidence:
   c <- min(c + g (1 - c), 0.95) where better, max(c - g c, 0.05) where worse, g = 0.1
   (Agent-GRPO paper, sections 3 to 5; that it takes a contrast: Winnow, DESIGN 2.7).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from pydantic import Field

from core.advantage import SPREAD
from core.experience import Experience
from core.library import Library
from core.record import Record

GAIN = 0.1
"""g in rule 3."""
LEAST, MOST = 0.05, 0.95
"""Confidence stays between them: nothing is beyond doubt."""


class Attempt(NamedTuple):
    """One rollout, as far as one lesson is concerned."""

    followed: bool | None
    """None where it cannot be told, or where the lesson did not apply."""
    reward: float | None
    """None while unscored."""


class Credit(Record):
    """What one group, or one entry of a usage log, says of one lesson."""

    experience_id: str
    source: str
    """Id of the group or of the log's entry; a lesson has at most one credit from each."""
    followers: int = Field(ge=0)
    others: int = Field(ge=0)
    """Rollouts that did not follow it; those of which it cannot be told are in neither."""
    better: bool | None = None
    """Whether the followers earned more than the others; None where that cannot be told."""
    in_sample: bool = False
    """Whether the lesson was learned from this very task: such a measurement proves nothing (DESIGN 2.7)."""

    @property
    def used(self) -> bool:
        return self.followers > 0


def weigh(experience_id: str, source: str, attempts: Sequence[Attempt], *, in_sample: bool = False) -> Credit:
    """Contrast the followers of a lesson with the others, by rules 1 and 2.

    >>> weigh("E-0001", "R1-0001", [Attempt(True, 1.0), Attempt(False, 0.0), Attempt(None, 1.0)]).better
    True
    """
    with_it = [a.reward for a in attempts if a.followed]
    without = [a.reward for a in attempts if a.followed is False]
    scored, scored_without = ([r for r in side if r is not None] for side in (with_it, without))
    better = None
    if scored and scored_without:
        difference = fmean(scored) - fmean(scored_without)
        better = difference > 0 if abs(difference) > SPREAD else None
    return Credit(
        experience_id=experience_id,
        source=source,
        followers=len(with_it),
        others=len(without),
        better=better,
        in_sample=in_sample,
    )


def moved(confidence: float, better: bool) -> float:
    """The confidence after one contrast, by rule 3.

    >>> round(moved(0.5, better=True), 3), round(moved(0.5, better=False), 3)
    (0.55, 0.45)
    """
    if better:
        return min(confidence + GAIN * (1 - confidence), MOST)
    return max(confidence - GAIN * confidence, LEAST)


def credited(experience: Experience, credits: Iterable[Credit]) -> Experience:
    """A lesson after its credits, which count in the order of their sources, whatever order they come in."""
    confidence, uses, wins = experience.confidence, experience.uses, experience.wins
    for credit in sorted(credits, key=lambda c: by_source(c.source)):
        if not credit.used:
            continue
        uses += 1
        wins += credit.better is True
        if credit.better is not None:
            confidence = moved(confidence, credit.better)
    return experience.model_copy(update={"confidence": confidence, "uses": uses, "wins": wins})


def keeper(library: Library, experience_id: str) -> str | None:
    """The live lesson that a credit counts for: itself, or the one that it was merged into; None where it is gone."""
    for _ in library.experiences:  # no chain of merges is longer
        found = library.experiences.get(experience_id)
        if found is None or found.status == "deleted":
            return None
        if found.status == "live":
            return found.id
        experience_id = found.merged_into or ""
    return None


def fold(library: Library, credits: Iterable[Credit]) -> Library:
    """The library after credits.

    What a lesson earned that was merged meanwhile counts for the one that it was merged into, as the merge itself sums
    up what its parts earned before; that of deleted lessons changes nothing.
    """
    by_id = defaultdict(list)
    for credit in credits:
        if (counts_for := keeper(library, credit.experience_id)) is not None:
            by_id[counts_for].append(credit)
    after = [
        credited(e, by_id[e.id]) if e.status == "live" and e.id in by_id else e
        for e in library.experiences.values()
    ]
    return Library.of(after, library.version)


def by_source(source: str) -> list[tuple[int, str]]:
    """Sorts sources with their numbers by value: R2-0001 before R10-0001."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", source)]
