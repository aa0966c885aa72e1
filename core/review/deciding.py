"""Decisions on proposals: approve, edit, rebase, reject, defer, and undo any of them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError

from core.errors import ApplyError, InputError
from core.experience import (
    Delete,
    Evidence,
    Experience,
    Operation,
    Proposal,
    ProposalStatus,
    fields_of,
    targets_of,
)
from core.library import Library
from core.packs.content import unfit
from core.review.claiming import Claiming, Verb
from core.review.staging import GONE, Stage, changed_since, stale
from core.roles import needs
from core.store.events import Entry, State
from core.store.proposals import decided_meanwhile

DECISIONS = {
    f"proposal.{name}" for name in ("approved", "rejected", "deferred", "edited", "rebased", "set_aside")
}
UNDONE = "proposal.undone"


class Deciding(Claiming):
    """What reviewers do with one proposal.

    Everywhere, `revision` is what the reviewer looked at (None takes the present one), and `force` decides although
    somebody else holds the proposal.
    """

    @needs("reviewer")
    def approve(
        self,
        proposal_id: str,
        actor: str,
        *,
        revision: int | None = None,
        text: str | None = None,
        reason: str = "",
        force: bool = False,
    ) -> Proposal:
        """Stage a proposal for the next version, with the reviewer's own text if one is given.

        Args:
            proposal_id: which one.
            actor: who decides.
            revision: what the reviewer looked at.
            text: the reviewer's own text, written down as an edit first; None keeps the text as it is.
            reason: why, if there is something to say.
            force: decide although somebody else holds it.

        Raises:
            ApplyError: the library cannot take it, it is stale, or somebody decided meanwhile.
            BusyError: somebody else holds it.
            InputError: it is decided already, or the text is not one.
        """
        with self._store.writing():
            if text is not None:
                revision = self.edit(proposal_id, text, actor, revision=revision, force=force).revision
            return self._approve(Stage(self._store), proposal_id, actor, revision, reason, force)

    def _approve(
        self, stage: Stage, proposal_id: str, actor: str, revision: int | None, reason: str, force: bool
    ) -> Proposal:
        proposal, over = self._looked_at(proposal_id, "approve", actor, revision, force)
        stage.add(proposal)
        edited, base = proposal.edited_text, stage.library.version
        return self._decide(proposal, "approved", reason.strip(), actor, over, base, edited=edited)

    @needs("reviewer")
    def edit(
        self, proposal_id: str, text: str, actor: str, *, revision: int | None = None, force: bool = False
    ) -> Proposal:
        """Give a proposal the reviewer's own text without deciding on it yet; a stale one stays stale.

        One that is in quarantine is proposed again: a person has said what was meant.

        Raises:
            ApplyError: somebody decided meanwhile.
            BusyError: somebody else holds it.
            InputError: it is decided already, or the text is not one.
        """
        with self._store.writing():
            proposal, over = self._looked_at(proposal_id, "edit", actor, revision, force)
            changed = _with_text(proposal, text)
            if proposal.status == "quarantined":
                changed = changed.model_copy(update={"status": "proposed", "reason": ""})
            return self._write(changed, actor, "proposal.edited", over, text=text)

    @needs("reviewer")
    def rebase(
        self,
        proposal_id: str,
        actor: str,
        *,
        text: str | None = None,
        revision: int | None = None,
        version: int | None = None,
        force: bool = False,
    ) -> Proposal:
        """Base a stale proposal on the library as it is now; its evidence, its status and its history stay.

        Args:
            proposal_id: which one.
            actor: who looked at the new text.
            text: the reviewer's own text against the new one; None keeps the text as it is.
            revision: what the reviewer looked at.
            version: the newest version when they looked at its text; None takes the text as it is now.
            force: do so although somebody else holds it.

        Raises:
            ApplyError: what it changes is not live any more or changed again since `version`, or somebody decided
                meanwhile.
            BusyError: somebody else holds it.
            InputError: it is not stale, it is decided already, or the text is not one.
        """
        with self._store.writing():
            proposal, over = self._looked_at(proposal_id, "rebase", actor, revision, force)
            library = self._store.versions.library()
            moved = stale(proposal, library)
            if not moved:
                raise InputError(f"{proposal.id} is not stale: it fits version {library.version} as it is.")
            targets = [_live(proposal, i, library) for i in targets_of(proposal.operation)]
            self._refuse_unseen(targets, version)
            fresh = proposal if text is None else _with_text(proposal, text)
            base = {
                "base_version": library.version,
                "base_texts": {e.id: e.text for e in targets},
                "base_fields": {e.id: fields_of(e) for e in targets},
            }
            fresh = fresh.model_copy(update=base)
            return self._write(fresh, actor, "proposal.rebased", over, moved=moved, text=text)

    def _refuse_unseen(self, targets: Sequence[Experience], version: int | None) -> None:
        """Refuse what was another one, or not there, in the version that was looked at."""
        if version is None:
            return
        seen = self._store.versions.library(version)
        for now in targets:
            if moved := changed_since({"text": now.text, **fields_of(now)}, now.id, seen):
                what = "" if moved == GONE else f"The {moved} of "
                raise ApplyError(
                    f"{what}{now.id} changed again since version {version}, which you looked at. "
                    "Look at it as it is now, then decide."
                )

    @needs("reviewer")
    def reject(
        self, proposal_id: str, reason: str, actor: str, *, revision: int | None = None, force: bool = False
    ) -> Proposal:
        """Turn a proposal down, with the reason.

        Raises:
            ApplyError: somebody decided meanwhile.
            BusyError: somebody else holds it.
            InputError: it is decided already, or there is no reason.
        """
        if not reason.strip():
            raise InputError(f"Say why {proposal_id} is rejected; the reason is kept with it.")
        with self._store.writing():
            proposal, over = self._looked_at(proposal_id, "reject", actor, revision, force)
            return self._decide(proposal, "rejected", reason.strip(), actor, over)

    @needs("reviewer")
    def defer(
        self, proposal_id: str, reason: str, actor: str, *, revision: int | None = None, force: bool = False
    ) -> Proposal:
        """Put a proposal off; it stays in the queue, but `next` does not give it.

        Raises:
            ApplyError: somebody decided meanwhile.
            BusyError: somebody else holds it.
            InputError: it is decided already.
        """
        with self._store.writing():
            proposal, over = self._looked_at(proposal_id, "defer", actor, revision, force)
            return self._decide(proposal, "deferred", reason.strip(), actor, over)

    @needs("reviewer")
    def undo(
        self, proposal_id: str, actor: str, *, revision: int | None = None, force: bool = False
    ) -> Proposal:
        """Take the last decision back: the proposal is what it was before. Again, and the one before it goes, too.

        Raises:
            ApplyError: somebody decided meanwhile.
            BusyError: somebody else holds it.
            InputError: it is published (that is undone by a new version), or there is nothing to undo.
        """
        with self._store.writing():
            proposal, last, over = self._undoable(proposal_id, actor, revision, force)
            before = proposal.model_copy(update=_before(last, proposal))
            return self._write(before, actor, UNDONE, over, was=proposal.status, undid=last.event.kind)

    def _undoable(
        self, proposal_id: str, actor: str, revision: int | None, force: bool
    ) -> tuple[Proposal, Entry, str | None]:
        """A proposal with the decision that an undo takes back, and whose claim that overrides; else see `undo`."""
        proposal = self._store.proposals.get(proposal_id)
        if proposal.status == "published":
            raise InputError(
                f"{proposal.id} is published in version {proposal.published_in} and stays there; "
                f"`winnow review revert {proposal.id}` proposes what takes it back, "
                f"`winnow rollback {proposal.published_in - 1 if proposal.published_in else 0}` makes a new version "
                "without it."
            )
        last = _last_decision(self._store.events.of(proposal_id))
        if last is None:
            raise InputError(f"{proposal.id} is {proposal.status}; there is no decision to undo.")
        return proposal, last, self._unmoved(proposal, actor, revision, force)

    @needs("reviewer")
    def adopt(self, item_id: str, operation: Operation, actor: str, *, rationale: str = "") -> Proposal:
        """Make a proposal of something in the quarantine: a person says what was meant.

        Args:
            item_id: `Q-0003`.
            operation: what it should be.
            actor: who says so.
            rationale: why; empty says where it came from.

        Raises:
            NotFoundError: there is no such item.
            ApplyError: the operation names what is not live.
            InputError: it was adopted already.
        """
        with self._store.writing():
            found = self._store.proposals.quarantined_item(item_id).item
            library = self._store.versions.library()
            proposal = Proposal(
                id="",  # the store gives it
                operation=operation,
                extractor="person",
                rationale=rationale or f"From the quarantine ({item_id}): {found.reason}",
                evidence=Evidence(group_ids=found.group_ids),
                run_id=found.run_id,
                base_version=library.version,
                base_texts={i: library.live(i).text for i in targets_of(operation)},
                raw_reply=found.raw,
            )
            return self._store.proposals.get(self._store.proposals.adopt(item_id, proposal, actor))

    # --- writing ---

    def _looked_at(
        self, proposal_id: str, verb: Verb, actor: str, revision: int | None, force: bool
    ) -> tuple[Proposal, str | None]:
        """A proposal that a decision can be made on, and whose claim that overrides.

        Raises:
            ApplyError: it was changed since `revision`.
            BusyError: somebody else holds it.
            InputError: it is decided already.
        """
        proposal = self._undecided(proposal_id, verb)
        return proposal, self._unmoved(proposal, actor, revision, force)

    def _unmoved(self, proposal: Proposal, actor: str, revision: int | None, force: bool) -> str | None:
        if revision is not None and proposal.revision != revision:
            raise decided_meanwhile(proposal, revision)
        return self._refuse_held(proposal.id, actor, force)

    def _decide(
        self,
        proposal: Proposal,
        status: ProposalStatus,
        reason: str,
        actor: str,
        over: str | None,
        base: int | None = None,
        **data: JsonValue,
    ) -> Proposal:
        changed = proposal.model_copy(update={"status": status, "reason": reason})
        done = self._write(changed, actor, f"proposal.{status}", over, base=base, reason=reason, **data)
        self._store.claims.end(proposal.id, actor)
        return done

    def _write(
        self,
        changed: Proposal,
        actor: str,
        event: str,
        over: str | None,
        *,
        base: int | None = None,
        **data: JsonValue,
    ) -> Proposal:
        """Write down who, when, why, on which version, and over whose claim."""
        at = self._store.events.clock()
        decided = changed.model_copy(update={"decided_by": actor, "decided_at": at})
        told = {"base": self._store.versions.head() if base is None else base, **data}
        told |= {"over": over} if over else {}
        return self._store.proposals.decide(decided, changed.revision, actor, event, **told)


def _last_decision(log: Sequence[Entry]) -> Entry | None:
    """The last decision that was not taken back."""
    standing: list[Entry] = []
    for entry in log:
        if entry.event.kind in DECISIONS:
            standing.append(entry)
        elif entry.event.kind == UNDONE and standing:
            standing.pop()
    return standing[-1] if standing else None


def _before(decision: Entry, now: Proposal) -> State:
    """What a decision changed, as it was; decisions from before the log kept that go back to the queue."""
    if decision.state is not None:
        was: State = decision.state["was"]
        return was
    if decision.event.kind == "proposal.edited":
        return {"edited_text": None}
    return {"status": "proposed", "reason": "" if now.status != "proposed" else now.reason}


def _with_text(proposal: Proposal, text: str) -> Proposal:
    if isinstance(proposal.operation, Delete):
        raise InputError(
            f"{proposal.id} deletes {proposal.operation.experience_id}; a delete has no text to edit."
        )
    if found := unfit(text):
        raise InputError(f"This cannot be the text of {proposal.id}: it {found.what}; {found.instead}.")
    try:
        changed = proposal.model_copy(update={"edited_text": text})
        _ = changed.effective
    except (ValueError, ValidationError) as e:
        raise InputError(f"This cannot be the text of {proposal.id}: {e}.") from e
    return changed


def _live(proposal: Proposal, experience_id: str, library: Library) -> Experience:
    try:
        return library.live(experience_id)
    except ApplyError as e:
        raise ApplyError(
            f"{proposal.id} cannot be rebased: {e} Reject it, or propose what you mean anew."
        ) from e
