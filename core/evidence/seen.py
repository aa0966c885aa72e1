"""Seen: the groups of a run as they come in, each counted once and let go.

What stays of a rollout is its id, its outcome and the numbers of its features, about 1 kB; the trajectory is
not kept. What stays of a task is its `Matter`. The order of adding does not matter, so groups can be added
while others are still being sampled, and looked at (`counts`) as often as wanted.
"""

from __future__ import annotations

import math
import threading
from collections import Counter

import numpy as np

from core.advantage import HUGE, SPREAD
from core.evidence.answer_features import Asked, answer_features, counted_words
from core.evidence.contrast import describe
from core.evidence.counts import Counted, Counts, Row
from core.evidence.features import Feature, answers_of
from core.evidence.matter import Matter
from core.evidence.tool_features import tool_features
from core.evidence.vocabulary import Vocabulary
from core.experience import Finding
from core.rollout import Group, Rollout, Task, Trajectory
from core.words import normalise

MAX_ANSWER = 200
"""Characters; a longer answer fits into no lesson, so none can give it away."""


class Seen:
    """The groups of a run so far. Adding and looking may happen in different threads."""

    def __init__(self) -> None:
        self._groups: dict[str, Counted] = {}
        self._matters: dict[str, Matter] = {}
        self._answers: set[str] = set()
        self._masked: set[str] = set()
        self._vocabulary = Vocabulary()
        self._counts: Counts | None = None
        self._lock = threading.Lock()

    def add(self, task: Task, group: Group) -> None:
        """Count a group; one that was added before is replaced (after a rescore, say).

        A group that is not informative and a rollout without an advantage teach nothing; the answers of their
        task are masked all the same.
        """
        asked, contrasted = Asked.of(task), _contrasted(group)
        matter = self._matters.get(task.id) or Matter.of(task)
        answers = {normalise(a) for a in answers_of(task) if len(a) <= MAX_ANSWER} - {""}
        found = [
            (features_of(asked, r.trajectory), counted_words(r.trajectory.answer, asked.masked))
            for r, _ in contrasted
        ]
        with self._lock:
            keys = [self._vocabulary.keys(features, words) for features, words in found]
            self._matters[task.id] = matter
            self._answers |= answers
            self._masked |= asked.masked
            self._groups[group.id] = Counted(
                domain=task.domain,
                acted=any(r.trajectory.steps for r in group.rollouts),
                rows=tuple(row for _, row in contrasted),
                sizes=tuple(map(len, keys)),
                keys=np.array([key for own in keys for key in own], dtype=np.uint64),
            )
            self._counts = None

    @property
    def groups_by_domain(self) -> dict[str, int]:
        """How many groups that teach were added, by domain."""
        return dict(Counter(g.domain for g in self.counts().groups.values() if g.rows))

    def counts(self) -> Counts:
        """All that was counted so far; what is added later does not change it."""
        with self._lock:
            if self._counts is None:
                self._counts = Counts(
                    groups=dict(sorted(self._groups.items())),
                    matters=dict(sorted(self._matters.items())),
                    answers=frozenset(self._answers),
                    masked=frozenset(self._masked),
                    vocabulary=self._vocabulary,
                )
            return self._counts


def features_of(asked: Asked, trajectory: Trajectory) -> list[Feature]:
    """The features that hold for one attempt at a task, words aside (`counted_words`)."""
    return [*answer_features(asked, trajectory), *tool_features(asked.question, trajectory, asked.masked)]


def describe_group(task: Task, group: Group, *, limit: int = 8) -> tuple[Finding, ...]:
    """What sets the winners of one group apart, for display beside it: no test of significance.

    Four against four can at best give p = .029 before any correction, so `p_corrected` is 1 by
    construction; `p` is the one stratum's, for ordering only.
    """
    seen = Seen()
    seen.add(task, group)
    return describe(seen.counts().table(least=1), limit=limit)


def _contrasted(group: Group) -> list[tuple[Rollout, Row]]:
    """The rollouts of an informative group that have an advantage, with what they earned.

    What makes a group informative is the extrinsic reward, so that is what is contrasted; where none of the
    group has one (recorded before there was such a thing), the reward. Those at par stay in: they are neither
    winners nor losers.
    """
    if group.status != "informative":
        return []
    told = [r for r in group.rollouts if r.error is None and r.reward is not None and r.advantage is not None]
    if any(r.extrinsic is not None for r in told):
        earned = [(r, r.extrinsic) for r in told]
    else:
        earned = [(r, r.reward) for r in told]
    outcomes = [(r, max(-HUGE, min(HUGE, y))) for r, y in earned if y is not None and math.isfinite(y)]
    values = [y for _, y in outcomes]
    if not values or max(values) - min(values) <= SPREAD:
        return []
    return [(r, Row(r.id, y, _sign(r.advantage or 0.0), r.model)) for r, y in outcomes]


def _sign(advantage: float) -> int:
    return (advantage > 0) - (advantage < 0)
