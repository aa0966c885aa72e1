"""The library as a value: operations give another library, all of them or none (DESIGN 2.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import assert_never

from core.errors import ApplyError, UnknownExperienceError
from core.experience import (
    MAX_WORDS,
    START_CONFIDENCE,
    Add,
    Delete,
    Experience,
    Merge,
    Modify,
    Operation,
)
from core.words import count_words, normalise


@dataclass(frozen=True)
class Change:
    """An operation with what the library has to remember of its proposal."""

    operation: Operation
    proposal_id: str | None = None
    confidence: float = START_CONFIDENCE
    learned_on: str = ""
    epoch: int = 0


@dataclass(frozen=True)
class Applied:
    """A library after a list of changes."""

    library: Library
    touched: tuple[str, ...]
    """Id of the experience that each change made or changed, in the order of the changes."""
    next_number: int


@dataclass(frozen=True)
class Library:
    """Experiences by id, dead ones too: an id is never used for anything else again."""

    experiences: Mapping[str, Experience] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0

    @classmethod
    def of(cls, experiences: Iterable[Experience], version: int = 0) -> Library:
        return cls(MappingProxyType({e.id: e for e in experiences}), version)

    def __iter__(self) -> Iterator[Experience]:
        """The live experiences in the order of their ids."""
        return iter(sorted((e for e in self.experiences.values() if e.status == "live"), key=_by_number))

    def __len__(self) -> int:
        return sum(e.status == "live" for e in self.experiences.values())

    def live(self, experience_id: str) -> Experience:
        """One live experience.

        Raises:
            UnknownExperienceError: there is none of that id, or it is no longer live.
        """
        found = self.experiences.get(experience_id)
        if found is None:
            raise UnknownExperienceError(f"There is no experience {experience_id} in version {self.version}.")
        if found.status != "live":
            fate = f"merged into {found.merged_into}" if found.status == "merged" else "deleted"
            raise UnknownExperienceError(
                f"Experience {experience_id} was {fate} and is not live in version {self.version}."
            )
        return found

    def apply(self, changes: Iterable[Change], next_number: int) -> Applied:
        """Return the library after all changes, in order; this one stays as it is.

        All or nothing: when one change does not fit, none is applied.

        Args:
            changes: what to do.
            next_number: number of the next new experience; ids are never used twice.

        Raises:
            UnknownExperienceError: a change names an experience that is not live.
            ApplyError: a text has more than 32 words, or says what a live experience of its domain says already.
        """
        after = dict(self.experiences)
        touched = []
        for change in changes:
            library = Library(MappingProxyType(after), self.version)
            experience_id = f"E-{next_number:04d}" if isinstance(change.operation, Add) else None
            touched.append(_apply(library, after, change, experience_id))
            next_number += experience_id is not None
        return Applied(Library(MappingProxyType(after), self.version), tuple(touched), next_number)


def check_fit(operation: Operation, library: Library) -> None:
    """Refuse an operation that this library cannot take.

    Raises:
        UnknownExperienceError: it names an experience that is not live.
        ApplyError: its text has more than 32 words, or says what another one of its domain says already.
    """
    library.apply([Change(operation)], next_number=10**9)


def _apply(library: Library, after: dict[str, Experience], change: Change, new_id: str | None) -> str:
    operation = change.operation
    match operation:
        case Add():
            _check_text(library, operation.text, operation.domain, ())
            experience = Experience(
                id=new_id or "",
                text=operation.text,
                kind=operation.kind,
                domain=operation.domain,
                confidence=change.confidence,
                epoch=change.epoch,
                proposal_id=change.proposal_id,
                learned_on=change.learned_on,
            )
        case Modify():
            old = library.live(operation.experience_id)
            _check_text(library, operation.text, operation.domain or old.domain, (old.id,))
            experience = old.model_copy(
                update={
                    "text": operation.text,
                    "kind": operation.kind or old.kind,
                    "domain": operation.domain or old.domain,
                    "proposal_id": change.proposal_id,
                    "learned_on": change.learned_on or old.learned_on,
                }
            )
        case Delete():
            old = library.live(operation.experience_id)
            experience = old.model_copy(update={"status": "deleted", "proposal_id": change.proposal_id})
        case Merge():
            experience = _merged(library, after, operation, change)
        case _:
            assert_never(operation)
    after[experience.id] = experience
    return experience.id


def _merged(library: Library, after: dict[str, Experience], merge: Merge, change: Change) -> Experience:
    """Put one experience in place of several: the first id lives on with the highest confidence of all."""
    sources = [library.live(i) for i in merge.experience_ids]
    keeper, *others = sources
    _check_text(library, merge.text, keeper.domain, merge.experience_ids)
    for other in others:
        after[other.id] = other.model_copy(
            update={"status": "merged", "merged_into": keeper.id, "proposal_id": change.proposal_id}
        )
    return keeper.model_copy(
        update={
            "text": merge.text,
            "confidence": max(s.confidence for s in sources),
            "uses": sum(s.uses for s in sources),
            "wins": sum(s.wins for s in sources),
            "proposal_id": change.proposal_id,
            "learned_on": change.learned_on or keeper.learned_on,
        }
    )


def _check_text(library: Library, text: str, domain: str, own: tuple[str, ...]) -> None:
    """Refuse what is too long, and what its domain knows already; another domain may say the same."""
    if (words := count_words(text)) > MAX_WORDS:
        raise ApplyError(
            f"The text has {words} words; an experience has at most {MAX_WORDS}. Shorten it, then approve it again."
        )
    same = normalise(text)
    for other in library:
        if other.id not in own and other.domain == domain and normalise(other.text) == same:
            raise ApplyError(f"{other.id} says the same already; reject this proposal or change its text.")


def _by_number(experience: Experience) -> tuple[int, str]:
    digits = experience.id.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else 0, experience.id)
