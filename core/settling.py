"""From what the rollouts of a group hold to its rewards, advantages and status (DESIGN 2.1, 2.2).

1. The extrinsic part is the weighted mean of the components `verified`, `tools` and `accepted`. The reward is the
   weighted sum of these and `epistemic`: g = alpha r + beta u for the preset "ASO".
2. A component that is not known for every rollout is left out for the whole group, and the weights of the others are
   scaled up to the same sum. The verifiers' r is different: where a group has any, a rollout that could not be
   verified is unscored and takes no part (DESIGN 2.1), since tool calls that succeed do not make an answer right.
3. Whether the group is informative depends on the extrinsic part alone: novelty teaches nothing by itself.
4. A rollout that broke off has no reward, whatever was recorded: an error is not a wrong answer.
5. A group that nobody graded is no failure: there is just nothing to learn from it yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.advantage import Signal, advantages, signal
from core.errors import InputError
from core.reward import NAMED, RECORDED, accepted, graded, tools, verified
from core.rollout import UNGRADED, Group, Rollout
from core.settings import Component, RewardConfig

HALVES = ("diversity", "novelty")
"""What the epistemic reward is the mean of (`core.epistemic`)."""

Columns = Mapping[Component, Sequence[float | None]]
"""Every component of the rollouts of a group, each of shape [G]."""


def settle(group: Group, reward: RewardConfig, *, waited_s: float = 0.0) -> Group:
    """Give a group its components, rewards, advantages and status; doing so again changes nothing.

    Args:
        group: its rollouts whole (steps are counted), with scores, acceptance, and, where the epistemic reward is
            wanted, the components "diversity" and "novelty".
        reward: how rewards are made.
        waited_s: seconds for which a user could have rejected an outcome; matters where silence counts.

    Raises:
        InputError: a verifier gave NaN or an infinite number, or a reward is too large for one.
    """
    rollouts, weights = group.rollouts, reward.by_component
    scores = verified(rollouts, reward)
    columns: Columns = {
        "verified": scores.values,
        "tools": [tools(r.trajectory.steps, reward) for r in rollouts],
        "accepted": [accepted(r.accepted, reward, waited_s) for r in rollouts],
        "epistemic": [_epistemic(r) for r in rollouts],
    }
    verifiable = "verified" in weights and bool(scores.used)
    takes_part = [
        r.error is None and not (verifiable and score is None)
        for r, score in zip(rollouts, scores.values, strict=True)
    ]
    extrinsic = _mean(columns, [c for c in weights if c != "epistemic"], weights, takes_part)
    whole = _mean(columns, list(weights), weights, [mean is not None for mean in extrinsic.values])
    rewards = [None if mean is None else mean * sum(weights.values()) for mean in whole.values]
    if too_large := [r.id for r, g in zip(rollouts, rewards, strict=True) if g and math.isinf(g)]:
        raise InputError(f"The reward of {too_large[0]} is too large for a number; choose smaller weights.")
    ended = [r for r, value in zip(rollouts, extrinsic.values, strict=True) if value is not None]
    found = signal(
        extrinsic.values,
        sum(r.error is not None for r in rollouts),
        graded=all(graded(r, reward) for r in ended),
    )
    if found.status == "failed" and _ungraded(rollouts):
        found = Signal("uninformative", UNGRADED)
    advantage = advantages(rewards)
    settled = [
        rollout.model_copy(
            update={
                "components": _components(rollout, {c: column[i] for c, column in columns.items()}, weights),
                "extrinsic": extrinsic.values[i],
                "reward": rewards[i],
                "advantage": advantage[i],
            }
        )
        for i, rollout in enumerate(rollouts)
    ]
    return group.model_copy(
        update={
            "rollouts": tuple(settled),
            "status": found.status,
            "reason": found.reason,
            "left_out": scores.left_out | extrinsic.left_out | whole.left_out,
        }
    )


def _ungraded(rollouts: Sequence[Rollout]) -> bool:
    """Whether attempts ended, and no verifier and no file said how well: there is nothing that could have failed."""
    ended = [r for r in rollouts if r.error is None]
    return bool(ended) and not any(r.scores or RECORDED in r.components for r in ended)


class _Mean(NamedTuple):
    values: tuple[float | None, ...]
    """Shape [G]."""
    left_out: dict[str, str]


def _mean(
    columns: Columns,
    wanted: Sequence[Component],
    weights: Mapping[Component, float],
    takes_part: Sequence[bool],
) -> _Mean:
    """Weighted mean of the wanted components, of those rollouts that take part, where all of them know it."""
    part = [i for i, yes in enumerate(takes_part) if yes]
    unknown = {c: sum(columns[c][i] is None for i in part) for c in wanted}
    left_out: dict[str, str] = {
        c: f"not known for {n} of {len(part)} rollouts" for c, n in unknown.items() if n
    }
    used = [c for c in wanted if not unknown[c]]
    total = math.fsum(weights[c] for c in used)
    values: list[float | None] = [None] * len(takes_part)
    for i in part if used else ():
        values[i] = math.fsum(weights[c] / total * (columns[c][i] or 0.0) for c in used)
    return _Mean(tuple(values), left_out)


def _epistemic(rollout: Rollout) -> float | None:
    """u, the mean of diversity and novelty, in [0, 1]."""
    halves = [rollout.components.get(half) for half in HALVES]
    known = [half for half in halves if half is not None]
    return sum(known) / 2 if len(known) == len(HALVES) else None


def _components(
    rollout: Rollout, made: Mapping[Component, float | None], weights: Mapping[Component, float]
) -> dict[str, float | None]:
    """What is stored: every part that is known, and those that are not but were wanted."""
    kept = {
        name: rollout.components[name] for name in (*HALVES, RECORDED, NAMED) if name in rollout.components
    }
    return {**kept, **{c: value for c, value in made.items() if value is not None or c in weights}}
