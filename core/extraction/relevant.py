"""Which experiences of a library matter for a group: all of a small one, the nearest of a large one (DESIGN 2.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.experience import GENERAL, Experience
from core.extraction.wording import words_of
from core.rollout import Group, Task

WHOLE_LIBRARY = 50
"""A library of at most so many experiences is shown whole (DESIGN 2.4)."""

Nearest = Callable[[str, Sequence[Experience], int], Sequence[Experience]]
"""(query, experiences, k) -> the k that matter most for the query, best first."""


def relevant(
    task: Task, group: Group, library: Sequence[Experience], nearest: Nearest | None = None
) -> list[Experience]:
    """The live experiences to show: all of a small library, else at most `WHOLE_LIBRARY` of it.

    First those that the rollouts were given (retrieval chose them for this task), then those of the task's domain
    and the general ones, then the rest, each part in the order of `nearest`.

    Args:
        task: its question is the query, with the errors that the attempts met (DESIGN 2.7).
        group: the attempts.
        library: to choose from.
        nearest: None compares words (`by_words`).
    """
    live = [e for e in library if e.status == "live"]
    if len(live) <= WHOLE_LIBRARY:
        return live
    errors = dict.fromkeys(s.error for r in group.rollouts for s in r.trajectory.steps if s.error)
    query = "\n".join([task.question, *errors])
    injected = {i for r in group.rollouts for i in r.injected.values()}
    chosen = [e for e in live if e.id in injected][:WHOLE_LIBRARY]
    for own in (True, False):
        part = [e for e in live if e.id not in injected and (e.domain in (task.domain, GENERAL)) is own]
        if part and (room := WHOLE_LIBRARY - len(chosen)):
            chosen += list((nearest or by_words)(query, part, room))[:room]
    return chosen


def by_words(query: str, experiences: Sequence[Experience], k: int) -> list[Experience]:
    """A `Nearest` without a model: by the share of an experience's words that the query holds, then by confidence."""
    asked = words_of(query)

    def order(e: Experience) -> tuple[float, float, str]:
        own = words_of(e.text)
        return -len(own & asked) / max(1, len(own)), -e.confidence, e.id

    return sorted(experiences, key=order)[:k]
