"""Whether an attempt that is known is the same attempt gone on: it was recorded while it still ran."""

from __future__ import annotations

from collections.abc import Sequence

from core.importers.attempt import Attempt
from core.rollout import Message, Step, Trajectory

_NO_RESULT = {"output": "", "success": None, "error": None, "duration_s": None, "told_by": ""}


def goes_on(earlier: Trajectory, later: Trajectory) -> bool:
    """Whether a trajectory begins with all of an earlier one, and has more.

    More are messages, steps, results of calls that had none, words of the answer that was being written when the
    earlier one was recorded, and why it ended.
    """
    if earlier == later or not (earlier.messages or earlier.steps or not earlier.answer):
        return False
    messages, steps = len(earlier.messages), len(earlier.steps)
    if not _said(earlier.messages, later.messages[:messages]):
        return False
    if not _done(earlier.steps, later.steps[:steps]):
        return False
    if earlier.messages != later.messages or earlier.steps != later.steps:
        return True
    return earlier.answer in ("", later.answer) and earlier.finish_reason in (None, later.finish_reason)


def tells_as_much(one: Attempt, other: Attempt) -> bool:
    """Whether another record of an attempt tells the same, and all scores that the one has."""
    known = {name: seen.value for name, seen in other.scores.items()}
    told = all(seen.value is None or known.get(name) == seen.value for name, seen in one.scores.items())
    return told and (one.trajectory, one.error) == (other.trajectory, other.error)


def with_scores_of(later: Attempt, earlier: Attempt) -> Attempt:
    """The later state of an attempt with the scores that only the earlier one has a number for."""
    numbers = {name for name, seen in later.scores.items() if seen.value is not None}
    kept = {n: seen for n, seen in earlier.scores.items() if seen.value is not None and n not in numbers}
    if not kept:
        return later
    return later.model_copy(update={"scores": later.scores | kept, "reward": later.reward or earlier.reward})


def _said(earlier: Sequence[Message], later: Sequence[Message]) -> bool:
    """Whether the messages are the same, but for the model's last turn, which may go on while its calls return."""
    if len(earlier) != len(later):
        return False
    last = max((place for place, m in enumerate(earlier) if m.role != "tool"), default=-1)
    return all(
        a == b or (place == last and a.role == b.role == "assistant" and b.content.startswith(a.content))
        for place, (a, b) in enumerate(zip(earlier, later, strict=True))
    )


def _done(earlier: Sequence[Step], later: Sequence[Step]) -> bool:
    """Whether the steps are the same, but for results that were missing."""
    if len(earlier) != len(later):
        return False
    return all(
        a == b or (_waiting(a) and a == b.model_copy(update=_NO_RESULT | {"duration_s": a.duration_s}))
        for a, b in zip(earlier, later, strict=True)
    )


def _waiting(step: Step) -> bool:
    return step.success is None and not step.output and step.error is None
