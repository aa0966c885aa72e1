"""Rollouts of one task laid beside each other: where each first parts from the first, and what was said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from core.divergence import Divergence, first_divergence
from core.record import Record
from core.rollout import Rollout
from core.store import Store

__all__ = ["Divergence", "Laid", "Reading", "lay"]

HEAVY = 1 << 20
"""Stored bytes of a trajectory that is not opened beside others."""


class Reading(Record):
    """What a model said of a rollout in stage 1."""

    key_decision: str = ""
    root_cause: str = ""
    used: tuple[str, ...] = ()
    """Ids of injected experiences that it followed."""
    ignored: tuple[str, ...] = ()
    known: bool = False
    """Whether any model was asked."""


class Laid(Record):
    """One of the rollouts."""

    rollout: Rollout
    """Whole; of a heavy one, without its messages and steps."""
    parting: Divergence | None = None
    """Where it parts from the first; of the first, where the earliest of the others does."""
    same: bool = False
    """Whether it does and answers the same as the first."""
    heavy: bool = False
    reading: Reading = Reading()


def lay(store: Store, rollouts: Sequence[Rollout]) -> list[Laid]:
    """Open rollouts beside each other.

    Args:
        store: where their trajectories are.
        rollouts: at least one; the first is what the others are compared with.
    """
    size = store.figures.weight_of([r.id for r in rollouts])
    heavy = {r.id for r in rollouts if size.get(r.id, 0) > HEAVY}
    whole = [r if r.id in heavy else store.groups.rollout(r.id) for r in rollouts]
    first, partings = whole[0], dict[str, Divergence]()
    for other in whole[1:]:
        if not {first.id, other.id} & heavy and (
            found := first_divergence(first.trajectory, other.trajectory)
        ):
            partings[other.id] = found
    if seen := [d for d in partings.values() if d.kind != "answer"]:
        partings[first.id] = min(seen, key=lambda d: d.place)
    return [
        Laid(
            rollout=r,
            parting=partings.get(r.id),
            same=r.id not in partings and not {first.id, r.id} & heavy,
            heavy=r.id in heavy,
            reading=_reading(store.groups.critique(r.id)),
        )
        for r in whole
    ]


def _reading(critique: str) -> Reading:
    said = json.loads(critique) if critique else None
    if not isinstance(said, Mapping):
        return Reading()
    return Reading(
        key_decision=str(said.get("key_decision") or ""),
        root_cause=str(said.get("root_cause") or ""),
        used=tuple(map(str, said.get("used") or ())),
        ignored=tuple(map(str, said.get("ignored") or ())),
        known=True,
    )
