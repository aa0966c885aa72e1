"""The rewards of one group with other weights, to look at: from stored parts, no model is asked and nothing is written.

Writing them down for a whole run is `Rescoring.rescore`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from core.advantage import SPREAD
from core.errors import InputError
from core.figures import Outline, PartFigure
from core.record import Record
from core.reward import NAMED, RECORDED, graded, unnamed
from core.rollout import Group, Rollout, Step
from core.settings import Component, RewardConfig
from core.settling import settle
from core.store import Store

Rightness = Literal["right", "partly right", "wrong"]
Source = Literal["verifiers", "recorded"]
COMPONENTS: tuple[Component, ...] = ("verified", "tools", "accepted", "epistemic")


class Reweighed(Record):
    """A group as it is, and as it would be."""

    before: Group
    after: Group
    reward: RewardConfig

    @property
    def changed(self) -> bool:
        """Whether any reward, or the group's status, would be another one."""
        pairs = zip(self.before.rollouts, self.after.rollouts, strict=True)
        return self.before.status != self.after.status or any(
            not _equal(a.reward, b.reward) for a, b in pairs
        )


def slim(store: Store, group_id: str) -> Group:
    """A group without its trajectories; of its steps it has the outcomes, which are all that rewards are made of.

    Raises:
        NotFoundError: there is no such group.
    """
    group, outlines = store.groups.get(group_id, trajectories=False), store.figures.outlines(group_id)
    rollouts = [
        r.model_copy(
            update={"trajectory": r.trajectory.model_copy(update={"steps": _steps(outlines.get(r.id, []))})}
        )
        for r in group.rollouts
    ]
    return group.model_copy(update={"rollouts": tuple(rollouts)})


def _steps(outlines: Sequence[Outline]) -> tuple[Step, ...]:
    return tuple(
        Step(tool=one.tool, success=success)
        for one in outlines
        for success, n in ((True, one.succeeded), (False, one.failed), (None, one.unknown))
        for _ in range(n)
    )


def known_components(group: Group) -> list[Component]:
    """Parts that some rollout of the group has a value of."""
    there = {name for r in group.rollouts for name, value in r.components.items() if value is not None}
    if {"diversity", "novelty"} <= there:
        there.add("epistemic")
    if any(r.trajectory.steps for r in group.rollouts):
        there.add("tools")
    if any(r.accepted is not None for r in group.rollouts):
        there.add("accepted")
    return [c for c in COMPONENTS if c in there]


def with_weights(
    reward: RewardConfig, weights: Mapping[Component, float], scores: Mapping[str, float]
) -> RewardConfig:
    """A configuration with other weights; with those that it has already, itself.

    Args:
        reward: how rewards are made now.
        weights: of the components.
        scores: of the scores that `verified` is made of, by name.

    Raises:
        InputError: nothing that is earned outside has a weight.
    """
    wanted = {name: weight for name, weight in weights.items() if weight > 0}
    of_scores = {
        **reward.verifier_weights,
        **{n: w for n, w in scores.items() if w != reward.verifier_weights.get(n, 1.0)},
    }
    if wanted == dict(reward.by_component) and of_scores == dict(reward.verifier_weights):
        return reward
    if not any(weight for name, weight in wanted.items() if name != "epistemic"):
        raise InputError("Give verified, tools or accepted a weight: novelty alone teaches nothing.")
    kept = {"preset": "own", "weights": wanted} if wanted != dict(reward.by_component) else {}
    return RewardConfig.read(
        {**reward.model_dump(), **kept, "verifier_weights": of_scores}, where="the weights"
    )


def reweighed(store: Store, group: Group, reward: RewardConfig) -> Reweighed:
    """Settle a group with other weights.

    Args:
        store: where its run is.
        group: as `slim` gives it.
        reward: how rewards would be made.

    Raises:
        InputError: a reward would be too large for a number.
    """
    run = store.figures.reward_of(group.run_id)
    waited_s = 0.0
    if run.finished_at is not None:
        now = datetime.fromisoformat(store.events.clock())
        waited_s = (now - datetime.fromisoformat(run.finished_at)).total_seconds()
    weighed = group.model_copy(update={"rollouts": unnamed(group.rollouts, run.reward, reward)})
    return Reweighed(before=group, after=settle(weighed, reward, waited_s=waited_s), reward=reward)


def told_right(rollout: Rollout, reward: RewardConfig) -> Rightness | None:
    """Whether a scored rollout is right, by what it earned; None where nothing tells right from wrong.

    Args:
        rollout: one that has a reward.
        reward: how it was made.
    """
    if rollout.extrinsic is None or not graded(rollout, reward):
        return None
    if rollout.extrinsic >= 1 - SPREAD:
        return "right"
    return "wrong" if rollout.extrinsic <= SPREAD else "partly right"


def sources(rollouts: Sequence[Rollout], reward: RewardConfig) -> frozenset[Source]:
    """Who said how well rollouts did: verifiers, those who recorded them, or both."""
    found = set[Source]()
    for r in rollouts:
        judged = set(r.scores)
        if NAMED in r.components:
            found.add("recorded")
            judged.clear()
        elif r.components.get(RECORDED) is not None and reward.verifier_weights.get(RECORDED, 1.0) > 0:
            found.add("recorded")
            judged &= reward.verifiers.keys()
        if judged:
            found.add("verifiers")
    return frozenset(found)


def contributions(
    values: Mapping[str, float | None], left_out: Sequence[str] | Mapping[str, str], reward: RewardConfig
) -> dict[str, float]:
    """What each component adds to a reward; they sum up to it (see `core.settling`, 1 and 2)."""
    weights = reward.by_component
    used = [c for c in weights if c not in left_out]
    total = sum(weights[c] for c in used)
    scale = sum(weights.values()) / total if total else 0.0
    return {c: weights[c] * scale * (values.get(c) or 0.0) for c in used}


def composition(parts: Sequence[PartFigure], reward: RewardConfig) -> dict[str, dict[str, float]]:
    """What each component adds to the mean reward of each domain; they sum up to it."""
    found: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    for part in parts:
        counts[part.domain] = counts.get(part.domain, 0) + part.scored
    for part in parts:
        share = part.scored / counts[part.domain]
        sums = found.setdefault(part.domain, {})
        for component, value in contributions(part.means, part.left_out, reward).items():
            sums[component] = sums.get(component, 0.0) + share * value
    return found


def rollout_parts(rollout: Rollout, group: Group, reward: RewardConfig) -> dict[str, float]:
    """What each component adds to the reward of one rollout; nothing where it has none."""
    return {} if rollout.reward is None else contributions(rollout.components, group.left_out, reward)


def _equal(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return abs(a - b) <= SPREAD
