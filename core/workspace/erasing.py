"""True erasure: texts are taken out of a workspace for good, and its files are searched for them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from core.errors import InputError, NotFoundError
from core.experience import text_of
from core.library import Library
from core.record import Record
from core.store.needle import Needle, merged
from core.store.proposals import number_of
from core.store.readers import readers
from core.store.redaction import Redacted, Replaced
from core.store.store import Store
from core.workspace.quiet import quiet
from core.workspace.searching import Found, remove_copies, search_files
from core.workspace.unfinished import drop, unfinished
from core.workspace.workspace import Workspace

LEAST = 4
"""Characters: shorter texts are parts of ordinary words."""
KIND = "secret"
EVERYTHING = 1_000_000
GIVES_UP = ("proposed", "deferred", "stale", "approved", "superseded")
"""Proposals that are rejected when their text was redacted: nobody is to publish a tombstone by mistake."""


class Erased(Record):
    """What a redaction did, or would do."""

    dry_run: bool
    redactions: tuple[Redacted, ...] = ()
    places: dict[str, int] = Field(default_factory=dict)
    """Occurrences by table and column."""
    calls_dropped: int = 0
    embeddings_dropped: int = 0
    experiences: tuple[str, ...] = ()
    """Live experiences whose text held it: they left the library in `version`."""
    version: int | None = None
    proposals: tuple[str, ...] = ()
    """Proposals whose text held it: they were rejected."""
    imports_dropped: int = 0
    """Interrupted imports whose spools were removed: compressed, and partly freed, they cannot be searched."""
    logs: tuple[str, ...] = ()
    """Files in logs/ that were rewritten."""
    removed: tuple[str, ...] = ()
    """Copies that were removed."""
    left: tuple[Found, ...] = ()
    """Where it still is: in files that are not rewritten (packs, backups), or where something was in the way."""
    by_chance: int = 0
    """Ids, hashes and times that hold it by chance; they stay."""
    proved: bool = False
    """Whether all files of the workspace were searched, and nothing is left."""


class Erasing:
    """Redactions of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._folder = workspace.folder
        self._store = workspace.store

    def texts_of(self, kind: str, name: str) -> list[str]:
        """What a rollout, an experience, a proposal or a task says in its own words.

        Raises:
            NotFoundError: there is none of that name.
        """
        return [text for text in dict.fromkeys(TEXTS[kind](self._store, name)) if len(text) >= LEAST]

    def redact(
        self,
        texts: Sequence[str],
        actor: str,
        *,
        kind: str = KIND,
        reason: str = "",
        exact_case: bool = False,
        copies: bool = False,
        dry_run: bool = False,
    ) -> Erased:
        """Replace texts by tombstones in every table and log, wipe the file, and search what is left.

        Args:
            texts: what has to go, literally.
            actor: who wants it.
            kind: what kind of thing it is; kept.
            reason: why; kept.
            exact_case: leave the same letters in the other case.
            copies: remove backups and copies from before upgrades that hold it.
            dry_run: only count.

        Raises:
            InputError: a text is too short, or part of what is kept, or rows could not be read without it.
            BusyError: a worker, a run or an import is at work.
        """
        texts = sorted(dict.fromkeys(texts), key=len, reverse=True)
        needles = [Needle(text, exact_case=exact_case) for text in texts]
        _check(needles, actor, kind, reason)
        if dry_run:
            found = search_files(self._folder, needles, database=False)
            counted = self._store.redactions.count(needles)
            dropped = len(unfinished(self._folder))
            return Erased(
                dry_run=True,
                places=counted.places,
                by_chance=counted.by_chance,
                left=tuple(found),
                imports_dropped=dropped,
                **self._foreseen(needles),
            )
        with quiet(self._folder):
            erased = self._replace(texts, needles, actor, kind, reason)
            dropped = drop(self._folder)
            logs = _rewrite_logs(self._folder, list(zip(needles, erased.redactions, strict=True)))
            wiped = self._store.redactions.wipe()
            removed = remove_copies(self._folder, needles) if copies else []
            left = search_files(self._folder, needles, database=True)
            proved = wiped and not left
            if proved:
                for redaction in erased.redactions:
                    self._store.redactions.set_proved(redaction.id)
        update = {
            "imports_dropped": dropped,
            "logs": tuple(logs),
            "removed": tuple(removed),
            "left": tuple(left),
            "proved": proved,
        }
        return erased.model_copy(update=update)

    def _foreseen(self, needles: Sequence[Needle]) -> dict[str, Any]:
        """What `_replace` would do to the library and to proposals."""
        library = self._store.versions.library()
        ids = [e.id for e in library if any(needle.found(e.text) for needle in needles)]
        waiting, _ = self._store.proposals.page(GIVES_UP, limit=EVERYTHING)
        texts = sorted((number_of(p.id), p.id, text_of(p.effective) or "") for p in waiting)
        rejected = [i for _, i, text in texts if any(needle.found(text) for needle in needles)]
        return {
            "experiences": tuple(ids),
            "version": library.version + 1 if ids else None,
            "proposals": tuple(rejected),
        }

    def _replace(
        self, texts: Sequence[str], needles: Sequence[Needle], actor: str, kind: str, reason: str
    ) -> Erased:
        """The part of it that happens in the database: one transaction."""
        store = self._store
        store.redactions.forget_pages()
        with store.writing():
            planned = store.redactions.plan(texts, actor, kind, reason)
            known = {r.id for r in store.redactions.all()}
            marks = [redaction.tombstone for redaction in planned]
            if any(needle.found(mark) for needle in needles for mark in marks):
                raise InputError("The text is part of what would stand in its place; it cannot be redacted.")
            replaced = store.redactions.replace(list(zip(needles, marks, strict=True)))
            self._check_readable(replaced)
            for rollout_id in store.redactions.names_of(replaced, "trajectories", "rollout_id"):
                rollout = store.groups.rollout(rollout_id)
                store.redactions.cut_anew(rollout_id, rollout.trajectory.answer)
                store.groups.count_tools_anew(rollout)
            for redaction, text in zip(planned, texts, strict=True):
                store.redactions.record(redaction, text, replaced.places)
            if replaced.places or {r.id for r in planned} - known:
                numbers = [redaction.id for redaction in planned]
                subject = f"redaction {numbers[0]}"
                store.events.append(
                    actor, "workspace.redacted", subject, redactions=list(numbers), kind=kind, reason=reason,
                    places=dict(replaced.places),
                )  # fmt: skip
            proposals = self._reject(store.redactions.names_of(replaced, "proposals"), marks, actor)
            experiences, version = self._retire(marks, actor)
            again = store.redactions.count(needles)
            if again.places:
                raise InputError(
                    f"The text would still be in {', '.join(again.places)}; nothing was changed."
                )
        return Erased(
            dry_run=False,
            redactions=tuple(planned),
            places=replaced.places,
            calls_dropped=replaced.calls,
            embeddings_dropped=replaced.embeddings,
            experiences=tuple(experiences),
            version=version,
            proposals=tuple(proposals),
            by_chance=again.by_chance,
        )

    def _check_readable(self, replaced: Replaced) -> None:
        """Refuse what would leave rows that are no longer what they are taken for.

        Raises:
            InputError: a row could not be read any more.
        """
        for table, column, read in readers(self._store):
            for row_id in self._store.redactions.names_of(replaced, table, column):
                try:
                    read(row_id)
                except Exception as e:
                    raise InputError(
                        f"Without the text, {row_id} ({table}) could not be read any more; nothing was changed. "
                        "Take more of the text, or change that first."
                    ) from e

    def _reject(self, ids: Sequence[str], marks: Sequence[str], actor: str) -> list[str]:
        """Turn down what is not published yet and whose text held it."""
        rejected = []
        for proposal_id in ids:
            proposal = self._store.proposals.get(proposal_id)
            text = text_of(proposal.effective) or ""
            if proposal.status in GIVES_UP and any(mark in text for mark in marks):
                update = {
                    "status": "rejected",
                    "reason": "Its text was redacted.",
                    "decided_by": actor,
                    "decided_at": self._store.events.clock(),
                }
                decided = proposal.model_copy(update=update)
                self._store.proposals.decide(decided, proposal.revision, actor, "proposal.rejected")
                rejected.append(proposal_id)
        return rejected

    def _retire(self, marks: Sequence[str], actor: str) -> tuple[list[str], int | None]:
        """A new version without the experiences whose text held it: a tombstone teaches nobody."""
        library = self._store.versions.library()
        ids = [e.id for e in library if any(mark in e.text for mark in marks)]
        if not ids:
            return [], None
        states = [
            e.model_copy(update={"status": "deleted"}) if e.id in ids else e
            for e in library.experiences.values()
        ]
        version = self._store.versions.save(
            library, Library.of(states, library.version), parent=library.version, author=actor,
            message="Without what was redacted", event="library.redacted",
        )  # fmt: skip
        return ids, version.number


def _check(needles: Sequence[Needle], actor: str, kind: str, reason: str) -> None:
    if not needles:
        raise InputError("There is no text to redact: it is empty.")
    for needle in needles:
        if len(needle.text.strip()) < LEAST:
            raise InputError(
                f"A text of fewer than {LEAST} characters cannot be redacted: it is part of ordinary words."
            )
        if any(needle.found(said) for said in (actor, kind, reason)):
            raise InputError(
                "The text is in your name, the kind or the reason, which are kept; say it in other words."
            )


def _rewrite_logs(folder: Path, replacements: Sequence[tuple[Needle, Redacted]]) -> list[str]:
    """Take the texts out of the files in logs/; gives those that held them."""
    rewritten = []
    marks = [(needle, redaction.tombstone) for needle, redaction in replacements]
    for path in sorted((folder / "logs").rglob("*")):
        if path.is_file():
            text, hits = merged(marks, path.read_bytes().decode("utf-8", "surrogateescape"))
            if hits:
                partial = path.with_name(f"{path.name}.partial")
                partial.write_bytes(text.encode("utf-8", "surrogateescape"))
                partial.replace(path)
                rewritten.append(str(path.relative_to(folder)))
    return rewritten


# -- by name -------------------------------------------------------------------------------------------------


def _of_task(store: Store, name: str) -> list[str]:
    task = store.tasks.find(name)
    if task is None:
        raise NotFoundError(f"There is no task {name!r} in this workspace; `winnow tasks list` shows them.")
    return [task.question, task.answer or ""]


def _of_rollout(store: Store, name: str) -> list[str]:
    trajectory = store.groups.rollout(name).trajectory
    said = [m.content for m in trajectory.messages if m.role in ("assistant", "tool")]
    return [trajectory.answer, *said, *(step.output for step in trajectory.steps)]


def _of_experience(store: Store, name: str) -> list[str]:
    return [e.text for _, _, e in store.versions.history(name)]


def _of_proposal(store: Store, name: str) -> list[str]:
    proposal = store.proposals.get(name)
    return [
        text_of(proposal.operation) or "",
        proposal.edited_text or "",
        proposal.rationale,
        proposal.raw_reply,
    ]


TEXTS: Mapping[str, Callable[[Store, str], list[str]]] = {
    "task": _of_task,
    "rollout": _of_rollout,
    "experience": _of_experience,
    "proposal": _of_proposal,
}
"""What can be redacted by its name, without typing it."""
