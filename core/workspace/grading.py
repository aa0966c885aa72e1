"""How attempts on their way in are graded: known ones anew, and those without a reward by their task's verifier.

A dry run and the import ask the same here, so that they tell the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.importers.report import ImportOptions
from core.reward import NAMED, RECORDED
from core.rollout import Rollout
from core.settings import RewardConfig
from core.store.database import Row


class Regrade(NamedTuple):
    """The reward of a known attempt as it is told now."""

    reward: float | None
    replaces: bool
    """Whether the user says it, so that it stands in place of another one; else it makes up for a missing one."""


def regrade_of(row: Row, regrades: bool) -> Regrade | None:
    """The reward that a known attempt gets, by its row of `Spool.attempts`; None where nothing new is said of it.

    Args:
        row: of the attempt.
        regrades: whether the user said which reward known attempts get.
    """
    said = regrades and bool(row["said"])
    if not (said or row["changed"]) or row["went_on"] or row["broken"]:
        return None
    return Regrade(row["reward"], said)


def regraded(rollout: Rollout, now: Regrade | None, config: RewardConfig) -> Rollout:
    """The rollout with the reward that there is for it now; itself where that is the same, or where it broke off.

    Args:
        rollout: as it is here.
        now: the reward that is told now.
        config: how the rewards of its run are made.
    """
    before = rollout.components.get(RECORDED)
    if now is None or rollout.error is not None or not (now.replaces or before is None):
        return rollout
    components = {n: value for n, value in rollout.components.items() if n not in (RECORDED, NAMED)}
    components |= recorded(now.reward, now.replaces, config)
    return (
        rollout if components == rollout.components else rollout.model_copy(update={"components": components})
    )


def recorded(reward: float | None, said: bool, config: RewardConfig) -> dict[str, float | None]:
    """The components of a recorded reward.

    Args:
        reward: None where there is none.
        said: whether the user named it: where its run has verifiers or weights of scores, it stands in their place.
        config: how the rewards of its run are made.
    """
    if reward is None:
        return {}
    weighed = bool(config.verifiers or config.verifier_weights)
    names = (RECORDED, NAMED) if said and weighed else (RECORDED,)
    return dict.fromkeys(names, reward)


def to_verify(rows: Sequence[Row], options: ImportOptions) -> list[int]:
    """Places in the spool of attempts of one group that came without reward and scores, where a grade is asked for.

    Only a task that came whole, or whose verifier the user named, is verified: nobody else asked for a grade.
    """
    if options.verifier is None and not any(row["own"] for row in rows):
        return []
    return [row["seq"] for row in rows if row["reward"] is None and not row["broken"] and not row["weighed"]]
