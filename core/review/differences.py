"""What differs between two libraries, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from core.experience import BASE_FIELDS, GENERAL, Experience
from core.injection import estimate_lessons
from core.library import Library
from core.memory import select
from core.record import Record

EARNED = ("confidence", "uses", "wins")
"""What an experience earned: it decides which ones are retrieved, and what an audit says of them."""

DOMAINS_WEIGHED = 50
"""So many of the domains in which most changed have their tokens counted."""


class Difference(Record):
    """What one experience is before and after."""

    experience_id: str
    before: str | None = None
    """Its text; None where it was not live."""
    after: str | None = None
    proposal_id: str | None = None
    """The proposal that made it what it is after; None where none did (what it earned was counted, say)."""
    merged_into: str | None = None
    """The experience that it was merged into, where that is why it is gone."""
    fields: dict[str, tuple[str, str]] = Field(default_factory=dict)
    """What else changed of an experience that is live before and after: {"domain": ("sums", "general")}."""


class DomainTokens(Record):
    """Estimated tokens of what is injected for the tasks of one domain."""

    domain: str
    """"general": for tasks of any domain without lessons of its own."""
    before: int
    after: int


def differences(before: Library, after: Library) -> tuple[Difference, ...]:
    """What differs between two libraries, by the ids of the experiences; texts are exact."""
    found = []
    for experience_id in sorted({*before.experiences, *after.experiences}, key=_by_number):
        was, now = before.experiences.get(experience_id), after.experiences.get(experience_id)
        if was is now:  # what nothing touched is the same record
            continue
        old, new = _live(was), _live(now)
        texts = (old.text if old else None, new.text if new else None)
        fields = {
            name: (_shown(getattr(old, name)), _shown(getattr(new, name)))
            for name in (*BASE_FIELDS, *EARNED)
            if old and new and getattr(old, name) != getattr(new, name)
        }
        if texts[0] != texts[1] or fields:
            by = now.proposal_id if now and now.proposal_id != (was.proposal_id if was else None) else None
            found.append(
                Difference(
                    experience_id=experience_id,
                    before=texts[0],
                    after=texts[1],
                    proposal_id=by,
                    merged_into=now.merged_into if old and now and now.status == "merged" else None,
                    fields=fields,
                )
            )
    return tuple(found)


def reads_alike(found: Sequence[Difference]) -> bool:
    """Whether nothing differs but what was earned, which no rollback takes back."""
    return all(d.before == d.after and not d.fields.keys() & set(BASE_FIELDS) for d in found)


def library_tokens(library: Library) -> int:
    """Estimated tokens of the whole library's injection text."""
    return estimate_lessons(list(library))


def domain_tokens(
    before: Library, after: Library, found: Sequence[Difference], budget_tokens: int
) -> tuple[DomainTokens, ...]:
    """What is injected for a task, in each domain that the differences touch; where they touch `general`, in all.

    Chosen as for a task (`core.memory.select`), whose question is not known here: where not all lessons fit, the most
    confident ones stand for those that it would retrieve.

    Args:
        before: the earlier library.
        after: the later one.
        found: what differs between them.
        budget_tokens: tokens that the injected text may take.
    """
    weights = Counter[str]()
    for d in found:
        for library in (before, after):
            if live := _live(library.experiences.get(d.experience_id)):
                weights[live.domain] += 1
    if weights[GENERAL]:
        weights.update({e.domain for library in (before, after) for e in library})
    named = sorted(domain for domain, _ in weights.most_common(DOMAINS_WEIGHED) if weights[domain])
    sides = [_by_domain(before), _by_domain(after)]
    return tuple(
        DomainTokens(domain=domain, before=counted[0], after=counted[1])
        for domain in named
        for counted in [[_tokens(side, domain, budget_tokens) for side in sides]]
    )


def _by_domain(library: Library) -> dict[str, list[Experience]]:
    found: dict[str, list[Experience]] = {GENERAL: []}
    for experience in library:
        found.setdefault(experience.domain, []).append(experience)
    return found


def _tokens(lessons: dict[str, list[Experience]], domain: str, budget_tokens: int) -> int:
    candidates = lessons[GENERAL] + (lessons.get(domain, []) if domain != GENERAL else [])
    return select(candidates, "", domain=domain, budget_tokens=budget_tokens).tokens


def _live(experience: Experience | None) -> Experience | None:
    return experience if experience is not None and experience.status == "live" else None


def _by_number(experience_id: str) -> tuple[int, str]:
    return len(experience_id), experience_id  # E-10000 comes after E-9999


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
