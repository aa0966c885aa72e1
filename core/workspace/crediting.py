"""What the lessons of a run earned: who followed which, and what came of it (`core.credit` has the rules).

A rollout *follows* a lesson where the counted features that the lesson's text speaks of hold for it; of a lesson
that speaks of nothing that can be counted, where its Stage-1 summary cites it. What was counted goes before what a
model says; where neither tells, the rollout takes no part.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from core.credit import Attempt, Credit, credited, keeper, weigh
from core.errors import NotFoundError
from core.evidence.answer_features import Asked
from core.evidence.seen import features_of
from core.experience import Experience
from core.extraction.sayings import Names, Saying, sayings
from core.library import Library
from core.record import Record, content_hash
from core.rollout import Group, Rollout, Task
from core.store import Store
from core.store.credits import PORTION, USAGE, Spent

if TYPE_CHECKING:
    from core.extraction.with_model import Taught
    from core.packs.usage_log import UsageEntry
    from core.store.imports import KeptEntry


class Earned(Record):
    """What one lesson earned: in a run, or by all that waits for the next version."""

    experience_id: str
    text: str
    groups: int
    """In which it was followed: its uses."""
    better: int
    """Of them, those where its followers earned more than their siblings: its wins."""
    worse: int
    in_sample: int
    """Of them, those whose task it was learned from."""
    confidence: float
    """In the newest version."""
    pending: float
    """With everything that the next version will fold in."""


class Crediting:
    """Credits lessons with what came of them. What it writes down is pending until a version is made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._texts = lru_cache(maxsize=8)(self._texts_of)
        self._behind = lru_cache(maxsize=8)(store.credits.tasks_behind)
        """What stands behind a version does not change: it is read once."""

    def credit_group(self, group: Group, task: Task, taught: Taught | None = None) -> list[Credit]:
        """Credit the lessons that a group was given, and keep what its summaries cite; again, it changes nothing.

        Final tasks only report (DESIGN 2.10): they credit nothing. A lesson that nobody followed has a credit only
        where it was learned from this very task.

        Args:
            group: finished, with its trajectories.
            task: what was tried.
            taught: what a model made of it; None takes what earlier summaries cited.
        """
        if taught is not None:
            self._store.credits.cite({s.rollout_id: s.used for s in taught.summaries})
        if task.split == "final" or not any(r.injected for r in group.rollouts):
            return []
        found = [c for c in self._weighed(group, task) if c.used or c.in_sample]
        self._store.credits.record(found)
        return found

    def credit_run(self, run_id: str) -> list[Earned]:
        """Credit all groups of a run that have rollouts, and say what its lessons earned, by their ids.

        Raises:
            NotFoundError: there is no such run.
        """
        self._store.runs.get(run_id)
        credits: list[Credit] = []
        with self._store.writing():
            for group_id in self._store.scores.group_ids(run_id):
                group = self._store.groups.get(group_id)
                task = self._store.tasks.find(group.task_id)
                if task is not None:
                    credits += self.credit_group(group, task)
        return self._earned(credits)

    def credit_usage(self, entries: Sequence[UsageEntry]) -> None:
        """Credit shipped lessons with what a usage log tells; a `core.packs.usage_log.Credit`.

        Attempts at one task with the same pack and model are siblings, in however many logs they come in; one without
        a task's name stands alone: it is a use, and no contrast. A credit is made of all siblings that are kept, and
        made anew with each that comes, until a version counts it. Then it stays, and siblings that come later are a
        use of their own, weighed among themselves.

        Args:
            entries: of the log, kept already.
        """
        siblings: defaultdict[str, list[KeptEntry]] = defaultdict(list)
        texts = Texts(self._store)
        for kept in self._store.imports.siblings(entries):
            known = kept.entry.only(texts.known(kept.entry))
            siblings[_source(kept)].append(kept._replace(entry=known))
        spent = self._store.credits.spent()
        credits = []
        for source, together in siblings.items():
            for experience_id in sorted({i for kept in together for i in kept.entry.injected}):
                portions, counted = spent.get((experience_id, source), Spent())
                attempts = [
                    Attempt(None if e.followed is None else experience_id in e.followed, e.outcome)
                    for place, _, e in together
                    if place > counted and experience_id in e.injected
                ]
                named = f"{source}{PORTION}{portions}" if portions else source
                credits.append(weigh(experience_id, named, attempts))
        self._store.credits.record(c for c in credits if c.used)

    def waiting(self, experience_ids: Collection[str] | None = None) -> list[Earned]:
        """What the next version will fold in, by the lesson that it counts for.

        Args:
            experience_ids: only what these earned, or what counts for them; None takes all.
        """
        pending = self._store.credits.pending()
        if not pending:
            return []
        library = self._store.versions.library()
        waiting = by_lesson(library, pending)
        return [
            _told(library.experiences[i], own, own)
            for i, own in sorted(waiting.items())
            if experience_ids is None or i in experience_ids or _any_of(own, experience_ids)
        ]

    def in_sample(self, task_id: str, experience_ids: Sequence[str], version: int) -> tuple[str, ...]:
        """Those of the lessons that were learned from this very task, up to a version: on it they prove nothing."""
        behind = self._behind(version)
        return tuple(i for i in experience_ids if task_id in behind.get(i, ()))

    def _weighed(self, group: Group, task: Task) -> list[Credit]:
        rollouts = [r for r in group.rollouts if r.error is None]
        texts = self._texts(group.library_version)
        given = dict.fromkeys(i for r in rollouts for i in r.injected.values() if i in texts)
        own = set(self.in_sample(task.id, list(given), group.library_version))
        cited = self._store.credits.cited(group.id)
        held = Held.of(task, rollouts)
        extrinsic = any(r.extrinsic is not None for r in rollouts)
        credits = []
        for experience_id in given:
            followed = follows(texts[experience_id], held)
            if followed is None:
                followed = [experience_id in cited[r.id] if r.id in cited else None for r in rollouts]
            attempts = [
                Attempt(did, r.extrinsic if extrinsic else r.reward)
                for r, did in zip(rollouts, followed, strict=True)
                if experience_id in r.injected.values()
            ]
            credits.append(weigh(experience_id, group.id, attempts, in_sample=experience_id in own))
        return credits

    def _texts_of(self, version: int) -> dict[str, str]:
        return {e.id: e.text for e in self._store.versions.library(version)}

    def _earned(self, credits: Sequence[Credit]) -> list[Earned]:
        library = self._store.versions.library()
        own, waiting = (by_lesson(library, some) for some in (credits, self._store.credits.pending()))
        return [_told(library.experiences[i], own[i], waiting[i]) for i in sorted(own)]


class Texts:
    """Which lessons this workspace published with which texts, by the marks that usage logs have."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._marks: dict[str, set[str]] = {}

    def known(self, entry: UsageEntry) -> set[str]:
        """Those of the lessons of an entry that were published here with the very text that it was given."""
        return {i for i, mark in entry.injected.items() if mark in self._of(i)}

    def _of(self, experience_id: str) -> set[str]:
        """The marks of every text that an experience ever had; none where there never was one of that id."""
        if experience_id not in self._marks:
            try:
                history = self._store.versions.history(experience_id)
            except NotFoundError:
                history = []
            marks = {hashlib.sha256(state.text.encode()).hexdigest()[:16] for _, _, state in history}
            self._marks[experience_id] = marks
        return self._marks[experience_id]


def _source(kept: KeptEntry) -> str:
    """What siblings in usage logs have in common, and nobody else."""
    key, entry = kept.key, kept.entry
    pack = (entry.pack.sha256, entry.pack.name, entry.pack.version)
    return f"{USAGE}{content_hash([*pack, entry.model, entry.task] if entry.task else key)[:16]}"


def by_lesson(library: Library, credits: Sequence[Credit]) -> defaultdict[str, list[Credit]]:
    """The uses among credits, by the live lesson that they count for."""
    found: defaultdict[str, list[Credit]] = defaultdict(list)
    for credit in credits:
        if credit.used and (counts_for := keeper(library, credit.experience_id)) is not None:
            found[counts_for].append(credit)
    return found


def _any_of(credits: Sequence[Credit], experience_ids: Collection[str]) -> bool:
    return any(credit.experience_id in experience_ids for credit in credits)


@dataclass(frozen=True, slots=True)
class Held:
    """What was counted of the rollouts of a group."""

    names: Names
    """What can be named of them."""
    features: tuple[frozenset[str], ...]
    """Names of the features that hold for each."""

    @classmethod
    def of(cls, task: Task, rollouts: Sequence[Rollout]) -> Held:
        asked = Asked.of(task)
        found = [features_of(asked, r.trajectory) for r in rollouts]
        by_name = {f.name: f for own in found for f in own}
        names = Names.of(by_name[name] for name in sorted(by_name))
        return cls(names, tuple(frozenset(f.name for f in own) for own in found))


def follows(text: str, held: Held) -> list[bool | None] | None:
    """Whether each rollout of a group does what a lesson says, as far as it was counted.

    A lesson that says several things is followed where all of them are done. Of the features that would show a thing
    the most telling one counts. What a lesson says of an error does not concern a rollout that met none.

    Args:
        text: the lesson.
        held: what was counted.

    Returns:
        By rollout, None where the lesson does not concern it; or None, where the lesson speaks of nothing that is
        counted.
    """
    said = [one for one in _said(text, held.names) if one.features]
    if not said:
        return None
    found: list[bool | None] = []
    for own in held.features:
        done = [_does(one, own) for one in said if _concerns(one, own)]
        found.append(all(done) if done else None)
    return found


def _does(saying: Saying, own: frozenset[str]) -> bool:
    # what was called after an error has a feature of its own each
    shown = saying.features if saying.subject[0] == "recovery" else saying.features[:1]
    return any(name in own for name in shown) == saying.do


def _concerns(saying: Saying, own: frozenset[str]) -> bool:
    if saying.subject[0] != "recovery":
        return True
    _, error, tool, _ = saying.subject
    return any(
        n.startswith(f"recovery={error}|" if error else "recovery=") and (not tool or f"|{tool}|" in n)
        for n in own
    )


def _said(text: str, names: Names) -> tuple[Saying, ...]:
    """What a lesson says, parsed with only the names that it can be about: once for most groups, that is."""
    low = text.lower()
    tools = frozenset(t for t in names.tools if t in text)
    errors = frozenset(e for e in names.errors if e.lower() in low)
    settings = tuple(s for s in names.settings if s[1].lower() in low)
    said = _sayings(text, Names(tools, errors, settings))
    if any(
        one.subject[0] == "recovery" for one in said
    ):  # what came after an error differs from group to group
        return _sayings(text, Names(tools, errors, settings, names.recoveries))
    return said


@lru_cache(maxsize=4096)
def _sayings(text: str, names: Names) -> tuple[Saying, ...]:
    return sayings(text, names)


def _told(experience: Experience, own: Sequence[Credit], waiting: Sequence[Credit]) -> Earned:
    return Earned(
        experience_id=experience.id,
        text=experience.text,
        groups=len(own),
        better=sum(c.better is True for c in own),
        worse=sum(c.better is False for c in own),
        in_sample=sum(c.in_sample for c in own),
        confidence=experience.confidence,
        pending=credited(experience, waiting).confidence,
    )
