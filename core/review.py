"""A person's decisions on proposals, and publishing what was approved (DESIGN 2.6, 2.7).

proposed -> approved | rejected(reason) | deferred, each of which can be undone until it is published;
approved proposals are staged, and publishing takes all of them, or none, into one new version.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from core.errors import ApplyError, InputError, StaleVersionError
from core.experience import Delete, Experience, Proposal, ProposalStatus, Version, targets_of
from core.injection import estimate_tokens, render
from core.library import Change, Library, check_fit
from core.record import Record
from core.store import Store

UNDECIDED: tuple[ProposalStatus, ...] = ("proposed", "deferred", "superseded")
"""What a decision can be made on; a superseded proposal may still be brought back by a person."""


class Difference(Record):
    """What one experience is before and after."""

    experience_id: str
    before: str | None = None
    after: str | None = None
    proposal_id: str | None = None


class Preview(Record):
    """What publishing would do; made from the same code that publishes."""

    parent: int
    differences: tuple[Difference, ...] = ()
    tokens_before: int = 0
    """Estimated tokens of the whole library's injection text."""
    tokens_after: int = 0


class Review:
    """Decisions on one workspace's proposals."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- deciding ---

    def approve(
        self, proposal_id: str, actor: str, *, revision: int | None = None, text: str | None = None
    ) -> Proposal:
        """Stage a proposal for the next version, with the reviewer's own text if one is given.

        Args:
            proposal_id: which one.
            actor: who decides.
            revision: what the reviewer looked at; None takes the present one.
            text: the reviewer's own text; None keeps the text as it is.

        Raises:
            ApplyError: the library cannot take it, it is stale, or somebody decided meanwhile.
            InputError: it is decided already, or the text is not one.
        """
        with self._store.writing():
            proposal = self._undecided(proposal_id, "approve")
            library = self._store.versions.library()
            if text is not None:
                proposal = _edited(proposal, text, library)
            if moved := stale(proposal, library):
                raise ApplyError(
                    f"{proposal.id} is stale: {moved}. Reject it, or edit it against the new text."
                )
            self._refuse_conflicts(proposal)
            self._check_fit(proposal, library)
            decided = _decision(proposal, "approved", actor, self._store.events.clock())
            return self._store.proposals.decide(
                decided,
                proposal.revision if revision is None else revision,
                actor,
                "proposal.approved",
                base=library.version,
                edited=proposal.edited_text,
            )

    def edit(self, proposal_id: str, text: str, actor: str, *, revision: int | None = None) -> Proposal:
        """Give a proposal the reviewer's own text without deciding on it yet.

        A new text is written against the library as it is now, so a stale proposal is fresh again.

        Raises:
            ApplyError: somebody decided meanwhile.
            InputError: it is decided already, or the text is not one.
        """
        with self._store.writing():
            proposal = _edited(self._undecided(proposal_id, "edit"), text, self._store.versions.library())
            at = self._store.events.clock()
            changed = _decision(proposal, proposal.status, actor, at, reason=proposal.reason)
            looked_at = proposal.revision if revision is None else revision
            return self._store.proposals.decide(changed, looked_at, actor, "proposal.edited", text=text)

    def reject(self, proposal_id: str, reason: str, actor: str, *, revision: int | None = None) -> Proposal:
        """Turn a proposal down, with the reason.

        Raises:
            ApplyError: somebody decided meanwhile.
            InputError: it is decided already, or there is no reason.
        """
        if not reason.strip():
            raise InputError(f"Say why {proposal_id} is rejected; the reason is kept with it.")
        return self._set(proposal_id, "rejected", reason.strip(), actor, revision)

    def defer(self, proposal_id: str, reason: str, actor: str, *, revision: int | None = None) -> Proposal:
        """Put a proposal off; it stays in the queue.

        Raises:
            ApplyError: somebody decided meanwhile.
            InputError: it is decided already.
        """
        return self._set(proposal_id, "deferred", reason.strip(), actor, revision)

    def undo(self, proposal_id: str, actor: str, *, revision: int | None = None) -> Proposal:
        """Take the last decision back: the proposal waits again. Undone once more, an edited text goes, too.

        Raises:
            ApplyError: somebody decided meanwhile.
            InputError: it is published (a rollback is a new version), or nothing was decided.
        """
        with self._store.writing():
            proposal = self._store.proposals.get(proposal_id)
            if proposal.status == "published":
                raise InputError(
                    f"{proposal.id} is published in version {proposal.published_in} and stays there; "
                    f"`winnow rollback {(proposal.published_in or 1) - 1}` makes a new version without it."
                )
            edited = proposal.status == "proposed" and proposal.edited_text is not None
            if edited:
                proposal = proposal.model_copy(update={"edited_text": None})
            if not edited and proposal.status not in ("approved", "rejected", "deferred"):
                raise InputError(f"{proposal.id} is {proposal.status}; there is no decision to undo.")
            at = self._store.events.clock()
            undone = _decision(proposal, "proposed", actor, at)
            looked_at = proposal.revision if revision is None else revision
            return self._store.proposals.decide(
                undone, looked_at, actor, "proposal.undone", was=proposal.status
            )

    def _set(
        self, proposal_id: str, status: ProposalStatus, reason: str, actor: str, revision: int | None
    ) -> Proposal:
        with self._store.writing():
            proposal = self._undecided(proposal_id, status.removesuffix("red").removesuffix("ed"))
            decided = _decision(proposal, status, actor, self._store.events.clock(), reason=reason)
            looked_at = proposal.revision if revision is None else revision
            return self._store.proposals.decide(
                decided, looked_at, actor, f"proposal.{status}", reason=reason
            )

    def _undecided(self, proposal_id: str, verb: str) -> Proposal:
        proposal = self._store.proposals.get(proposal_id)
        if proposal.status not in UNDECIDED:
            how = f"by {proposal.decided_by}" if proposal.decided_by else "already"
            undo = "" if proposal.status in ("published", "quarantined") else " Undo that first."
            raise InputError(f"Cannot {verb} {proposal.id}: it was {proposal.status} {how}.{undo}")
        return proposal

    def _check_fit(self, proposal: Proposal, library: Library) -> None:
        """Refuse what the library, as it will be with everything that is staged, cannot take."""
        check_fit(proposal.effective, library)  # first alone, so that the message names what is live already
        staged = self.staged()
        after = library.apply(_changes(staged), self._store.versions.next_number())
        try:
            check_fit(proposal.effective, after.library)
        except ApplyError as e:
            rivals = ", ".join(p.id for p in staged)
            raise ApplyError(f"{proposal.id} does not fit what is approved already ({rivals}): {e}") from e

    def _refuse_conflicts(self, proposal: Proposal) -> None:
        """Two staged changes of one experience would depend on their order: the reviewer has to choose."""
        mine = set(targets_of(proposal.operation))
        staged, _ = self._store.proposals.page(["approved"], limit=10_000)
        for other in staged:
            if shared := mine & set(targets_of(other.operation)):
                raise ApplyError(
                    f"{other.id} is approved already and changes {min(shared)} too; "
                    "publish it or undo it before you approve this one."
                )

    # --- publishing ---

    def staged(self, only: Sequence[str] | None = None) -> list[Proposal]:
        """What the next version would take in, in the order of the ids; all that is approved, or these of them."""
        found, _ = self._store.proposals.page(["approved"], limit=10_000)
        return sorted((p for p in found if only is None or p.id in only), key=lambda p: p.id)

    def preview(self) -> Preview:
        """What publishing would do now; nothing is changed.

        Raises:
            ApplyError: the staged proposals do not fit the newest version.
        """
        before = self._store.versions.library()
        staged = self.staged()
        applied = before.apply(_changes(staged), self._store.versions.next_number())
        return Preview(
            parent=before.version,
            differences=differences(before, applied.library, dict(zip(applied.touched, staged, strict=True))),
            tokens_before=library_tokens(before),
            tokens_after=library_tokens(applied.library),
        )

    def publish(
        self, message: str, actor: str, *, parent: int | None = None, only: Sequence[str] | None = None
    ) -> Version:
        """Take all approved proposals into one new version, in one transaction.

        Args:
            message: what the version is about; kept with it.
            actor: who publishes.
            parent: the version that the publisher looked at; None takes the newest.
            only: ids of the approved proposals that are taken; None takes all.

        Raises:
            InputError: nothing is approved.
            ApplyError: a proposal does not fit; nothing was published.
            StaleVersionError: the library moved on since `parent`.
        """
        with self._store.writing():
            before = self._store.versions.library()
            staged = self.staged(only)
            if not staged:
                raise InputError("Nothing is approved, so there is nothing to publish; see `winnow review`.")
            self._refuse_moved(before, parent)
            if moved := next((f"{p.id}: {m}" for p in staged if (m := stale(p, before))), None):
                raise ApplyError(f"A staged proposal is stale, {moved}. Undo it, then publish again.")
            applied = before.apply(_changes(staged), self._store.versions.next_number())
            message = message.strip() or f"Publish {', '.join(p.id for p in staged)}"
            version = self._store.versions.save(
                before,
                applied.library,
                parent=before.version,
                author=actor,
                message=message,
                event="version.published",
            )
            for proposal, experience_id in zip(staged, applied.touched, strict=True):
                done = {"status": "published", "published_in": version.number, "experience_id": experience_id}
                self._store.proposals.decide(
                    proposal.model_copy(update=done),
                    proposal.revision,
                    actor,
                    "proposal.published",
                    version=version.number,
                    experience=experience_id,
                )
        return self._store.versions.get(version.number)

    def rollback(self, number: int, actor: str, *, message: str = "", parent: int | None = None) -> Version:
        """Make a new version that reads as version `number` did; nothing is erased.

        Raises:
            NotFoundError: there is no such version.
            InputError: the newest version reads so already.
            StaleVersionError: the library moved on since `parent`.
        """
        with self._store.writing():
            head = self._store.versions.library()
            target = self._store.versions.as_of(self._store.versions.library(number), head)
            self._refuse_moved(head, parent)
            if target.experiences == head.experiences:
                raise InputError(
                    f"Version {head.version} reads as version {number} did; there is nothing to roll back."
                )
            return self._store.versions.save(
                head,
                target,
                parent=head.version,
                author=actor,
                message=message.strip() or f"Roll back to version {number}",
                event="version.rolled_back",
            )

    def _refuse_moved(self, head: Library, parent: int | None) -> None:
        if parent is not None and parent != head.version:
            moved = self._store.versions.get(head.version)
            raise StaleVersionError(parent, head.version, f"{moved.author} published {moved.message!r}")

    def origin(self, experience_id: str) -> tuple[Experience, list[Proposal]]:
        """An experience as it was last, and the proposals that made it so, the newest first.

        Raises:
            NotFoundError: there never was such an experience.
        """
        states = self._store.versions.history(experience_id)
        ids = dict.fromkeys(state.proposal_id for _, _, state in reversed(states) if state.proposal_id)
        return states[-1][2], [self._store.proposals.get(i) for i in ids]


def stale(proposal: Proposal, library: Library) -> str:
    """Why the proposal no longer fits what it was based on; empty where it does."""
    for experience_id, text in proposal.base_texts.items():
        now = library.experiences.get(experience_id)
        if now is None or now.status != "live":
            return f"{experience_id} is not live in version {library.version}"
        if now.text != text:
            return f"the text of {experience_id} changed since version {proposal.base_version}"
    return ""


def differences(
    before: Library, after: Library, why: dict[str, Proposal] | None = None
) -> tuple[Difference, ...]:
    """What differs between two libraries, by the ids of the experiences; texts are exact."""
    found = []
    for experience_id in sorted({*before.experiences, *after.experiences}):
        old, new = _live_text(before, experience_id), _live_text(after, experience_id)
        if old != new:
            proposal = (why or {}).get(experience_id)
            found.append(
                Difference(
                    experience_id=experience_id,
                    before=old,
                    after=new,
                    proposal_id=proposal.id if proposal else None,
                )
            )
    return tuple(found)


def library_tokens(library: Library) -> int:
    """Estimated tokens of the whole library's injection text."""
    return estimate_tokens(render(list(library)).text)


def _live_text(library: Library, experience_id: str) -> str | None:
    found = library.experiences.get(experience_id)
    return found.text if found is not None and found.status == "live" else None


def _changes(staged: Sequence[Proposal]) -> list[Change]:
    return [
        Change(
            operation=p.effective,
            proposal_id=p.id,
            confidence=p.confidence,
            learned_on=p.learned_on,
            epoch=p.epoch,
        )
        for p in staged
    ]


def _edited(proposal: Proposal, text: str, library: Library) -> Proposal:
    """With the reviewer's own text, which was written against the library as it is now."""
    if isinstance(proposal.operation, Delete):
        raise InputError(
            f"{proposal.id} deletes {proposal.operation.experience_id}; a delete has no text to edit."
        )
    try:
        texts = {i: library.live(i).text for i in targets_of(proposal.operation)}
        fresh = {"edited_text": text, "base_texts": texts, "base_version": library.version}
        changed = proposal.model_copy(update=fresh)
        _ = changed.effective
    except (ValueError, ValidationError) as e:
        raise InputError(f"This cannot be the text of {proposal.id}: {e}.") from e
    return changed


def _decision(
    proposal: Proposal, status: ProposalStatus, actor: str, at: str, *, reason: str = ""
) -> Proposal:
    return proposal.model_copy(
        update={"status": status, "reason": reason, "decided_by": actor, "decided_at": at}
    )
