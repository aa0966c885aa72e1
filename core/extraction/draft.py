"""Draft: an operation with what stands behind it, before it has an id and a status in the store.

Every extractor hands back an `Outcome`, in which nothing is lost: operations in = drafts + joined +
quarantined.
"""

from __future__ import annotations

from pydantic import Field

from core.experience import START_CONFIDENCE, Evidence, Extractor, Operation, Quarantined, text_of
from core.record import Record


class Draft(Record):
    """An operation that an extractor suggests; the store makes a proposal of it."""

    operation: Operation
    evidence: Evidence = Evidence()
    rationale: str = ""
    """Why, in words for the reviewer."""
    confidence: float = Field(default=START_CONFIDENCE, ge=0.05, le=0.95)
    """What the experience would start with (DESIGN 2.7)."""
    learned_on: str = ""
    """Model that the rollouts came from."""
    extractor: Extractor = "evidence"
    raw_reply: str = ""
    """The model's reply that the operation was read from; empty for the evidence extractor."""
    group_ids: tuple[str, ...] = ()
    """The groups that it was drawn from."""

    @property
    def text(self) -> str | None:
        """The text it would put into the library; None for a delete."""
        return text_of(self.operation)


class Joined(Record):
    """An operation that says what is already there: not proposed again, its evidence is kept."""

    text: str
    into: str
    """Id of the live experience, or the text of the draft, that already says it."""
    reason: str = ""
    evidence: Evidence = Evidence()
    raw_reply: str = ""
    group_ids: tuple[str, ...] = ()


class Superseded(Record):
    """A draft that lost to another one: not proposed, but kept where the reviewer can restore it."""

    draft: Draft
    reason: str


class Outcome(Record):
    """What an extractor made of a batch: operations in = drafts + joined + quarantined."""

    drafts: tuple[Draft, ...] = ()
    joined: tuple[Joined, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    """What could not become a proposal, each with its reason."""
    notes: tuple[str, ...] = ()
    """What the reviewer should know and what is no operation: weak findings, domains that taught nothing."""

    def __add__(self, other: Outcome) -> Outcome:
        """Both outcomes, in order."""
        return Outcome(
            drafts=self.drafts + other.drafts,
            joined=self.joined + other.joined,
            quarantined=self.quarantined + other.quarantined,
            notes=self.notes + other.notes,
        )
