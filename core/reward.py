"""What a reward is made of: its components, and how they are weighed (DESIGN 2.2).

1. `verified` is the weighted mean of the verifiers' scores, r. A score that some rollout of the group lacks is left
   out for all of them, so that rewards of one group are always made of the same parts.
2. A recorded reward (`RECORDED`) stands in place of the scores that came with it: whoever recorded it may have
   weighed them otherwise. It need not lie in [0, 1]. Verifiers of the run count beside it; but a reward that a user
   named after them (`NAMED`: by a file of rewards, or as a score) is the reward by itself, until the verifiers or their
   weights are said anew (`unnamed`).
3. `tools` is the share of tool calls that succeeded, rho_s. A call without a recorded result did not succeed. With no
   call at all the Agent-GRPO paper gives 1; so does the preset "agent-paper". Everywhere else a share of nothing is
   not known (None, which is not 0), and is left out for the whole group: never calling a tool gains nothing by it,
   and loses nothing (Winnow, DESIGN 2.2: "so that never calling a tool does not win").
4. `accepted` is whether a user accepted the outcome, rho_a in {0, 1}. Where nobody said it is not known; silence
   of at least `SILENCE_S` counts as acceptance only if the configuration says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.errors import InputError
from core.rollout import Rollout, Step
from core.settings import RewardConfig

RECORDED = "recorded"
"""Name of the reward that came with an imported rollout, among its components and in `verifier_weights`."""

NAMED = "named"
"""Name, among its components, of a recorded reward that a user named after the verifiers of its run."""

SILENCE_S = 120.0
"""Seconds after which silence may count as acceptance (Agent-GRPO paper)."""

Values = Mapping[str, float | None]
"""Scores of one rollout by their name; None where one is not known."""


class Weighed(NamedTuple):
    """The weighted means of one group, and which scores they were made of."""

    values: tuple[float | None, ...]
    """Shape [G]; None where a rollout could not be scored."""
    used: tuple[str, ...]
    left_out: dict[str, str]
    """Scores that took no part, with the reason."""


def verified(rollouts: Sequence[Rollout], reward: RewardConfig) -> Weighed:
    """The component `verified` of the rollouts of one group, shape [G]; None for those that broke off.

    Raises:
        InputError: a verifier gave NaN or an infinite number; it is named.
    """
    named = [None if r.error is not None else r.components.get(NAMED) for r in rollouts]
    found = _weighed([r for r, value in zip(rollouts, named, strict=True) if value is None], reward)
    others = iter(found.values)
    values = tuple(next(others) if value is None else value for value in named)
    if all(value is None for value in named):
        return found
    return Weighed(values, (NAMED, *found.used), found.left_out)


def graded(rollout: Rollout, reward: RewardConfig) -> bool:
    """Whether its reward tells right from wrong: verifiers made it, whose 1 is all right and whose 0 is nothing.

    A reward that was recorded elsewhere has the range and the sense that it had there: 0 may be the best of it.
    """
    recorded = rollout.components.get(RECORDED) is not None and reward.verifier_weights.get(RECORDED, 1.0) > 0
    if recorded or rollout.components.get(NAMED) is not None or "verified" not in reward.by_component:
        return False
    return any(score.value is not None for score in rollout.scores.values())


def unnamed(
    rollouts: Sequence[Rollout], before: RewardConfig, now: RewardConfig, anew: Sequence[str] = ()
) -> tuple[Rollout, ...]:
    """The rollouts as they are weighed where verifiers score anew, or where they or their weights are others now.

    Then a reward that a user named counts as any recorded one does.
    """
    if not anew and (before.verifiers, before.verifier_weights) == (now.verifiers, now.verifier_weights):
        return tuple(rollouts)
    return tuple(
        r.model_copy(update={"components": {n: v for n, v in r.components.items() if n != NAMED}})
        if NAMED in r.components
        else r
        for r in rollouts
    )


def _weighed(rollouts: Sequence[Rollout], reward: RewardConfig) -> Weighed:
    """`verified` of those whose reward no user named."""
    scores = [None if r.error is not None else _scores(r) for r in rollouts]
    weights = reward.verifier_weights
    recorded = [r.components.get(RECORDED) for r in rollouts]
    if weights.get(RECORDED, 1.0) <= 0 or all(r is None for r in recorded):
        return weigh(scores, weights)
    own = weigh([_without(s, reward.verifiers) for s in scores], weights)
    base = [mean if r is None else r for r, mean in zip(recorded, own.values, strict=True)]
    beside = [
        None if s is None else {RECORDED: b} | {n: v for n, v in s.items() if n in reward.verifiers}
        for s, b in zip(scores, base, strict=True)
    ]
    return weigh(beside, weights)


def tools(steps: Sequence[Step], reward: RewardConfig) -> float | None:
    """The component `tools` of one rollout: the share of its tool calls that succeeded, in [0, 1]."""
    if steps:
        return sum(step.success is True for step in steps) / len(steps)
    return 1.0 if reward.preset == "agent-paper" else None


def accepted(verdict: bool | None, reward: RewardConfig, waited_s: float = 0.0) -> float | None:
    """The component `accepted` of one rollout: 0, 1, or None where nobody said.

    Args:
        verdict: what a user said of its outcome.
        reward: whether silence counts.
        waited_s: seconds for which a user could have said something.
    """
    if verdict is None and reward.silence_accepts and waited_s >= SILENCE_S:
        return 1.0
    return None if verdict is None else float(verdict)


def weigh(scores: Sequence[Values | None], weights: Mapping[str, float]) -> Weighed:
    """Weigh the scores of the G rollouts of one group.

    A score that some rollout lacks is left out for all. If that left nothing, all scores are kept, and the rollouts
    that lack one are unscored.

    Args:
        scores: by name for each rollout, shape [G]; None for a rollout that broke off.
        weights: by name, at least 0; 1 where absent.
    """
    ended = [s for s in scores if s is not None]
    names = sorted({name for s in ended for name in s if weights.get(name, 1.0) > 0})
    known = [n for n in names if all(s.get(n) is not None for s in ended)]
    used = known or names
    left_out = {n: "not known for every rollout of the group" for n in names if n not in used}
    return Weighed(tuple(_mean(s, used, weights) for s in scores), tuple(used), left_out)


def _mean(scores: Values | None, used: Sequence[str], weights: Mapping[str, float]) -> float | None:
    if scores is None or not used:
        return None
    total = weight_sum = 0.0
    for name in used:
        value = scores.get(name)
        if value is None:
            return None
        weight = weights.get(name, 1.0)
        total += weight * value
        weight_sum += weight
    return total / weight_sum


def _scores(rollout: Rollout) -> dict[str, float | None]:
    for name, score in rollout.scores.items():
        if score.value is not None and not math.isfinite(score.value):
            raise InputError(
                f"The verifier {name!r} gave {score.value} for {rollout.id}; a score is a number in [0, 1], or None."
            )
    return {name: score.value for name, score in rollout.scores.items()}


def _without(scores: Values | None, names: Mapping[str, object]) -> Values | None:
    return None if scores is None else {n: v for n, v in scores.items() if n not in names}
