"""What is approved and not yet published, and what a further approval has to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from core.errors import ApplyError, InputError
from core.experience import Modify, Operation, Proposal, ProposalStatus, targets_of, text_of
from core.library import Change, Draft, Library
from core.packs.content import unfit
from core.store import Store

UNDECIDED: tuple[ProposalStatus, ...] = ("proposed", "deferred", "superseded")
"""What a decision can be made on; a superseded proposal may still be brought back by a person."""

GONE = "life"
"""What changed of a lesson that is not live any more."""

Standing = ProposalStatus | Literal["edited and approved"]

EVERYTHING = 1_000_000


def stale(proposal: Proposal, library: Library) -> str:
    """Why the proposal no longer fits what it was based on; empty where it does."""
    for experience_id, text in proposal.base_texts.items():
        base = {"text": text, **proposal.base_fields.get(experience_id, {})}
        moved = changed_since(base, experience_id, library)
        if moved == GONE:
            return f"{experience_id} is not live in version {library.version}"
        if moved:
            return f"the {moved} of {experience_id} changed since version {proposal.base_version}"
    return ""


def changed_since(base: Mapping[str, str], experience_id: str, library: Library) -> str:
    """The first field of a lesson that is another one in a library; `GONE` where it is not live there, else empty."""
    now = library.experiences.get(experience_id)
    if now is None or now.status != "live":
        return GONE
    return next((name for name, was in base.items() if getattr(now, name) != was), "")


def standing(proposal: Proposal, library: Library) -> Standing:
    """Where a proposal stands, in words: its status, and what a reader should know beside it.

    Args:
        proposal: any.
        library: the newest version.
    """
    if proposal.status in ("proposed", "deferred", "approved") and stale(proposal, library):
        return "stale"
    if proposal.status == "approved" and proposal.edited_text is not None:
        return "edited and approved"
    return proposal.status


def staged(store: Store, only: Sequence[str] | None = None) -> list[Proposal]:
    """What the next version would take in, in the order in which it was proposed.

    Args:
        store: where.
        only: ids of the approved proposals that are meant; None takes all.

    Raises:
        InputError: one of those named is not approved.
    """
    found, _ = store.proposals.page(["approved"], limit=EVERYTHING)
    if only is not None:
        found = [p for p in found if p.id in only]
        if missing := sorted(set(only) - {p.id for p in found}):
            now = store.proposals.get(missing[0])
            raise InputError(f"{now.id} is not approved: it is {now.status}. Nothing was published.")
    return sorted(found, key=lambda p: (len(p.id), p.id))


def change_of(proposal: Proposal) -> Change:
    """The change that publishing makes of a proposal."""
    return Change(
        operation=proposal.effective,
        proposal_id=proposal.id,
        confidence=proposal.confidence,
        learned_on=proposal.learned_on,
        epoch=proposal.epoch,
    )


def refuse_idle(proposal: Proposal, library: Library) -> None:
    """Refuse a change after which everything is as it was.

    Raises:
        ApplyError: the proposal gives a lesson the text, kind and domain that it has.
    """
    if of := idle(proposal.effective, library):
        raise ApplyError(f"{proposal.id} changes nothing: {of} reads so already. Edit it, or reject it.")


def idle(operation: Operation, library: Library) -> str:
    """The lesson that has the text, kind and domain already which a change would give it; empty where it is none."""
    if not isinstance(operation, Modify) or (now := library.experiences.get(operation.experience_id)) is None:
        return ""
    after = {
        "text": operation.text,
        "kind": operation.kind or now.kind,
        "domain": operation.domain or now.domain,
    }
    return "" if changed_since(after, now.id, library) else now.id


def refuse_unfit(proposal: Proposal) -> None:
    """Refuse a text that no lesson may hold, such as one with a key in it.

    Raises:
        ApplyError: it holds that; the sentence says what to do, and repeats nothing of it.
    """
    if found := unfit(text_of(proposal.effective) or ""):
        raise ApplyError(
            f"{proposal.id} {found.what}: {found.instead} (winnow review edit {proposal.id} --text ...), or reject it."
        )


class Stage:
    """The library, and what is approved on top of it. Lives as long as one transaction."""

    def __init__(self, store: Store) -> None:
        self.library = store.versions.library()
        number = store.versions.next_number()
        self._alone = Draft(self.library, number)
        self._together = Draft(self.library, number)
        self._by_target: dict[str, Proposal] = {}
        """The first that is staged to change an experience."""
        self._by_result: dict[str, Proposal] = {}
        """What made or changed an experience."""
        self._added: set[str] = set()
        """Ids of what was put on the stage since, which is not approved yet."""
        for proposal in staged(store):
            if not stale(
                proposal, self.library
            ):  # a stale one cannot be published: it stands in nobody's way
                self._take(proposal)

    def _take(self, proposal: Proposal) -> None:
        try:
            made = self._together.take(change_of(proposal))
        except ApplyError as e:
            raise ApplyError(
                f"{proposal.id}, which is approved already, no longer fits: {e} Undo it first."
            ) from e
        self._keep(proposal, made)

    def _keep(self, proposal: Proposal, made: str) -> None:
        self._by_result[made] = proposal
        for target in targets_of(proposal.operation):
            self._by_target.setdefault(target, proposal)

    def add(self, proposal: Proposal) -> None:
        """Put a proposal on the stage; what is refused is named with its id.

        Raises:
            ApplyError: it is stale, changes what another one on the stage changes, or the library cannot take it.
        """
        if moved := stale(proposal, self.library):
            there = self.library.experiences
            gone = any(i not in there or there[i].status != "live" for i in proposal.base_texts)
            way = (
                "or propose what you mean anew"
                if gone
                else f"or rebase it on the new text: winnow review rebase {proposal.id}"
            )
            raise ApplyError(f"{proposal.id} is stale: {moved}. Reject it, {way}.")
        self._refuse_rival(proposal)
        refuse_idle(proposal, self.library)
        refuse_unfit(proposal)
        try:
            self._alone.check(
                proposal.effective
            )  # first alone, so that the message names what is live already
        except ApplyError as e:
            raise ApplyError(f"{proposal.id} cannot be approved: {e}") from e
        try:
            made = self._together.take(change_of(proposal))
        except ApplyError as e:
            raise ApplyError(self._beside(proposal, str(e))) from e
        self._keep(proposal, made)
        self._added.add(proposal.id)

    def _beside(self, proposal: Proposal, why: str) -> str:
        """Why a proposal does not fit beside the others on the stage: one of those says the same."""
        other = next((p for made, p in self._by_result.items() if made in why), None)
        if other is None:
            return f"{proposal.id} does not fit beside what is approved already: {why}"
        if other.id in self._added:
            return f"{proposal.id} says the same as {other.id}, and both are named: leave one of them out."
        return (
            f"{proposal.id} says the same as {other.id}, which is approved already: reject one of them, or change its"
            " text."
        )

    def _refuse_rival(self, proposal: Proposal) -> None:
        """Two staged changes of one experience would depend on their order: the reviewer has to choose."""
        for target in sorted(targets_of(proposal.operation)):
            if other := self._by_target.get(target):
                if other.id in self._added:
                    raise ApplyError(
                        f"{other.id} and {proposal.id} both change {target}, and both are named: leave one of them out."
                    )
                raise ApplyError(
                    f"{proposal.id} cannot be approved yet: {other.id} is approved already and changes {target} too;"
                    f" publish or undo {other.id} first."
                )
