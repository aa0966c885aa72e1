"""The time that a run would take if calls were all there is: a list schedule of its calls.

The model: every call takes exactly the latency; at most `slots` run at once; a call may start as soon as those that
it needs have ended, and starts as soon as a slot is free. A group of G rollouts needs G calls; an informative one
then needs a summary of each scored rollout (each needs *all* rollouts of its group: the sign comes from the group),
then a contrast (needs all its summaries); the consolidation of a batch needs all its contrasts, and is one call,
which is not made where the batch has no informative group. Batches do not wait for each other (gate "none"). Which
of several ready calls starts first is tried in three orders, earlier stages first, later stages first and earlier
groups first, and the shortest schedule counts. Computing takes no time at all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

ROLLOUT, SUMMARY, CONTRAST, CONSOLIDATION = range(4)


class Shape(NamedTuple):
    """The calls of one group."""

    batch: int
    rollouts: int
    summaries: int
    """0 where the group is not informative; then there is no contrast either."""


class _Call(NamedTuple):
    stage: int
    place: int
    """Of the group, or of the batch for a consolidation."""


def calls(shapes: Sequence[Shape]) -> int:
    """How many calls a run of these groups makes."""
    batches = {s.batch for s in shapes if s.summaries}
    return sum(s.rollouts + s.summaries + (s.summaries > 0) for s in shapes) + len(batches)


def ideal_s(shapes: Sequence[Shape], slots: int, latency_s: float) -> float:
    """Length of the shortest of the list schedules."""
    orders: list[Callable[[_Call], tuple[int, int]]] = [
        lambda c: (c.stage, c.place),
        lambda c: (-c.stage, c.place),
        lambda c: (c.place, -c.stage),
    ]
    return min(_length_s(shapes, slots, latency_s, order) for order in orders)


def _length_s(
    shapes: Sequence[Shape], slots: int, latency_s: float, order: Callable[[_Call], tuple[int, int]]
) -> float:
    missing = Counter[_Call]()
    """By stage and place: calls that have not ended yet."""
    for place, shape in enumerate(shapes):
        missing[_Call(ROLLOUT, place)] = shape.rollouts
        missing[_Call(SUMMARY, place)] = shape.summaries
        missing[_Call(CONTRAST, place)] = int(shape.summaries > 0)
    open_contrasts = Counter(s.batch for s in shapes if s.summaries)
    ready: list[tuple[tuple[int, int], _Call]] = []
    running: list[tuple[float, _Call]] = []
    now = 0.0

    def make_ready(call: _Call, count: int) -> None:
        for _ in range(count):
            heapq.heappush(ready, (order(call), call))

    def ended(call: _Call) -> None:
        missing[call] -= 1
        if missing[call] > 0 or call.stage == CONSOLIDATION:
            return
        shape = shapes[call.place]
        if call.stage == CONTRAST:
            open_contrasts[shape.batch] -= 1
            if not open_contrasts[shape.batch]:
                make_ready(_Call(CONSOLIDATION, shape.batch), 1)
        elif shape.summaries:
            following = _Call(call.stage + 1, call.place)
            make_ready(following, missing[following])

    for place, shape in enumerate(shapes):
        make_ready(_Call(ROLLOUT, place), shape.rollouts)
    while ready or running:
        while ready and len(running) < slots:
            _, call = heapq.heappop(ready)
            heapq.heappush(running, (now + latency_s, call))
        now, call = heapq.heappop(running)
        ended(call)
        while running and running[0][0] <= now:
            ended(heapq.heappop(running)[1])
    return now
