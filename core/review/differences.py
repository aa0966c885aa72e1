"""What differs between two libraries, exactly."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from core.experience import Experience, Proposal
from core.injection import estimate_tokens, render
from core.library import Library
from core.record import Record

SHOWN = ("kind", "domain")
"""What of an experience matters to a reader besides its text: where it is injected, and how it counts there."""


class Difference(Record):
    """What one experience is before and after."""

    experience_id: str
    before: str | None = None
    """Its text; None where it was not live."""
    after: str | None = None
    proposal_id: str | None = None
    fields: dict[str, tuple[str, str]] = Field(default_factory=dict)
    """What else changed of an experience that is live before and after: {"domain": ("sums", "general")}."""


def differences(
    before: Library, after: Library, why: Mapping[str, Proposal] | None = None
) -> tuple[Difference, ...]:
    """What differs between two libraries, by the ids of the experiences; texts are exact.

    Args:
        before: the earlier library.
        after: the later one.
        why: the proposal behind each change, by the id of the experience.
    """
    found = []
    for experience_id in sorted({*before.experiences, *after.experiences}):
        old, new = _live(before, experience_id), _live(after, experience_id)
        texts = (old.text if old else None, new.text if new else None)
        fields = {
            name: (getattr(old, name), getattr(new, name))
            for name in SHOWN
            if old and new and getattr(old, name) != getattr(new, name)
        }
        if texts[0] != texts[1] or fields:
            proposal = (why or {}).get(experience_id)
            found.append(
                Difference(
                    experience_id=experience_id,
                    before=texts[0],
                    after=texts[1],
                    proposal_id=proposal.id if proposal else None,
                    fields=fields,
                )
            )
    return tuple(found)


def library_tokens(library: Library) -> int:
    """Estimated tokens of the whole library's injection text."""
    return estimate_tokens(render(list(library)).text)


def _live(library: Library, experience_id: str) -> Experience | None:
    found = library.experiences.get(experience_id)
    return found if found is not None and found.status == "live" else None
