"""What the lessons of a run earned: who followed which, and what came of it (`core.credit` has the rules).

A rollout *follows* a lesson where the counted features that the lesson's text speaks of hold for it; of a lesson
that speaks of nothing that can be counted, where its Stage-1 summary cites it. What was counted goes before what a
model says; where neither tells, the rollout takes no part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from core.credit import Attempt, Credit, credited, weigh
from core.evidence.answer_features import Asked
from core.evidence.seen import features_of
from core.experience import Experience
from core.extraction.sayings import Names, Saying, sayings
from core.record import Record, content_hash
from core.rollout import Group, Rollout, Task
from core.store import Store

if TYPE_CHECKING:
    from core.extraction.with_model import Taught
    from core.packs.usage_log import UsageEntry


class Earned(Record):
    """What one lesson earned in one run."""

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

        Attempts at one task with the same pack and model are siblings; one without a task's name stands alone: it
        is a use, and no contrast.
        """
        siblings: defaultdict[tuple[str, ...], list[UsageEntry]] = defaultdict(list)
        for entry in entries:
            task = entry.task or entry.key
            siblings[entry.pack.sha256, entry.pack.name, str(entry.pack.version), entry.model, task].append(
                entry
            )
        credits = []
        for together in siblings.values():
            source = f"usage:{content_hash(sorted(e.key for e in together))[:16]}"
            for experience_id in sorted({i for e in together for i in e.injected}):
                attempts = [
                    Attempt(None if e.followed is None else experience_id in e.followed, e.outcome)
                    for e in together
                    if experience_id in e.injected
                ]
                credits.append(weigh(experience_id, source, attempts))
        self._store.credits.record(c for c in credits if c.used)

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
        by_id: defaultdict[str, list[Credit]] = defaultdict(list)
        for credit in credits:
            if credit.used:
                by_id[credit.experience_id].append(credit)
        library = self._store.versions.library()
        waiting: defaultdict[str, list[Credit]] = defaultdict(list)
        for credit in self._store.credits.pending():
            waiting[credit.experience_id].append(credit)
        return [
            _told(library.experiences[i], own, waiting[i])
            for i, own in sorted(by_id.items())
            if i in library.experiences
        ]


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
