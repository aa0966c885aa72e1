"""The library as a value: operations give another library, all of them or none (DESIGN 2.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import assert_never

from core.errors import ApplyError, UnknownExperienceError
from core.experience import (
    GENERAL,
    MAX_CHARACTERS,
    MAX_WORDS,
    START_CONFIDENCE,
    Add,
    Delete,
    Experience,
    Merge,
    Modify,
    Operation,
    check_domain,
    same_domain,
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
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    @cached_property
    def _live(self) -> tuple[Experience, ...]:
        return tuple(sorted((e for e in self.experiences.values() if e.status == "live"), key=_by_number))

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
            ApplyError: a text is too long, or says what a live experience of its domain says already.
        """
        draft = Draft(self, next_number)
        touched = tuple([draft.take(change) for change in changes])
        return Applied(draft.library(), touched, draft.next_number)


class Draft:
    """A library that changes are taken into one after the other; the library that it began with stays as it is."""

    def __init__(self, library: Library, next_number: int) -> None:
        self._states = dict(library.experiences)
        self._version = library.version
        self.next_number = next_number
        """Number of the next new experience."""
        self._said: dict[str, dict[str, set[str]]] = {}
        """Ids of the live experiences by normalised text; of each domain that was asked about."""

    def library(self) -> Library:
        """The library with all that was taken."""
        return Library(MappingProxyType(dict(self._states)), self._version)

    def take(self, change: Change) -> str:
        """Take a change whole, or refuse it whole; gives the id of the experience that it made or changed.

        Raises:
            UnknownExperienceError: it names an experience that is not live.
            ApplyError: its text is too long, or says what another one of its domain says already.
        """
        states = self._results(change)
        for experience in states:
            self._forget(self._states.get(experience.id))
            self._states[experience.id] = experience
            self._learn(experience)
        self.next_number += isinstance(change.operation, Add)
        return states[0].id

    def check(self, operation: Operation) -> None:
        """Refuse what `take` would refuse; nothing is changed.

        Raises:
            UnknownExperienceError: see `take`.
            ApplyError: see `take`.
        """
        self._results(Change(operation))

    def _results(self, change: Change) -> list[Experience]:
        """The states that a change gives, the one that it made or changed first."""
        operation = change.operation
        match operation:
            case Add():
                self._check_text(operation.text, operation.domain, ())
                return [
                    Experience(
                        id=f"E-{self.next_number:04d}",
                        text=operation.text,
                        kind=operation.kind,
                        domain=operation.domain,
                        confidence=change.confidence,
                        epoch=change.epoch,
                        proposal_id=change.proposal_id,
                        learned_on=change.learned_on,
                    )
                ]
            case Modify():
                old = self._live(operation.experience_id)
                self._check_text(operation.text, operation.domain or old.domain, (old.id,))
                changed = {
                    "text": operation.text,
                    "kind": operation.kind or old.kind,
                    "domain": operation.domain or old.domain,
                    "proposal_id": change.proposal_id,
                    "learned_on": change.learned_on or old.learned_on,
                }
                return [old.model_copy(update=changed)]
            case Delete():
                old = self._live(operation.experience_id)
                return [old.model_copy(update={"status": "deleted", "proposal_id": change.proposal_id})]
            case Merge():
                return self._merged(operation, change)
            case _:
                assert_never(operation)

    def _merged(self, merge: Merge, change: Change) -> list[Experience]:
        """Put one experience in place of several: the first id lives on with the highest confidence of all."""
        sources = [self._live(i) for i in merge.experience_ids]
        keeper, *others = sources
        self._check_text(merge.text, keeper.domain, merge.experience_ids)
        whole = {
            "text": merge.text,
            "confidence": max(s.confidence for s in sources),
            "uses": sum(s.uses for s in sources),
            "wins": sum(s.wins for s in sources),
            "proposal_id": change.proposal_id,
            "learned_on": change.learned_on or keeper.learned_on,
        }
        gone = {"status": "merged", "merged_into": keeper.id, "proposal_id": change.proposal_id}
        return [keeper.model_copy(update=whole), *(other.model_copy(update=gone) for other in others)]

    def _live(self, experience_id: str) -> Experience:
        return Library(self._states, self._version).live(experience_id)

    def _check_text(self, text: str, domain: str, own: tuple[str, ...]) -> None:
        """Refuse what is too long, and what its domain knows already; another domain may say the same."""
        if len(text) > MAX_CHARACTERS:
            raise ApplyError(
                f"The text has {len(text):,} characters; an experience has at most {MAX_CHARACTERS:,}, however few"
                " words they make. Shorten it, then approve it again."
            )
        if (words := count_words(text)) > MAX_WORDS:
            raise ApplyError(
                f"The text has {words} words; an experience has at most {MAX_WORDS}. Shorten it, then approve it again."
            )
        if others := self._saying(domain).get(_normalised(text), set()).difference(own):
            raise ApplyError(f"{min(others)} says the same already; reject this proposal or change its text.")

    def _saying(self, domain: str) -> dict[str, set[str]]:
        if domain not in self._said:
            self._said[domain] = {}
            for experience in self._states.values():
                if experience.domain == domain:
                    self._learn(experience)
        return self._said[domain]

    def _learn(self, experience: Experience) -> None:
        if experience.status == "live" and experience.domain in self._said:
            said = self._said[experience.domain]
            said.setdefault(_normalised(experience.text), set()).add(experience.id)

    def _forget(self, experience: Experience | None) -> None:
        if experience is not None and experience.status == "live" and experience.domain in self._said:
            self._said[experience.domain][_normalised(experience.text)].discard(experience.id)


_normalised = lru_cache(maxsize=32_768)(normalise)  # a library is indexed anew for every decision on it


def _by_number(experience: Experience) -> tuple[int, str]:
    digits = experience.id.rpartition("-")[2]
    return (int(digits) if digits.isdigit() else 0, experience.id)


def check_fit(operation: Operation, library: Library, domains: Iterable[str] = ()) -> None:
    """Refuse an operation of a person that this library cannot take, or whose domain is surely mistyped.

    Args:
        operation: what is to be proposed.
        library: what it would be applied to.
        domains: those of the tasks: one that is among them may be named, whatever the library has.

    Raises:
        UnknownExperienceError: it names an experience that is not live.
        ApplyError: its text is too long, or says what another one of its domain says already; or its domain is none,
            or differs from one that is in use only in case or spaces.
    """
    if isinstance(operation, Add | Modify) and operation.domain is not None:
        _check_domain(operation, operation.domain, library, domains)
    Draft(library, 10**9).check(operation)


def _check_domain(operation: Add | Modify, named: str, library: Library, domains: Iterable[str]) -> None:
    own = operation.experience_id if isinstance(operation, Modify) else None
    known = dict.fromkeys([GENERAL, *domains, *(e.domain for e in library if e.id != own)])
    if named in known:
        return
    if meant := next((one for one in known if same_domain(one, named)), None):
        raise ApplyError(
            f"The domain {named!r} differs from {meant!r}, which is in use, only in case or spaces, and a lesson is"
            f" injected for the tasks of exactly its domain: name {meant!r}."
        )
    try:
        check_domain(named)
    except ValueError as e:
        raise ApplyError(f"The lesson cannot be proposed: {e}.") from e
