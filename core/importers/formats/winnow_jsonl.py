"""Winnow's own form of recorded rollouts: JSONL, one rollout a line.

    {"winnow_rollout": 1, "task": {...}, "replicate": 0, "model": "...",
     "messages": [{"role": "user", "content": "..."}],
     "steps": [{"tool": "...", "parameters": {}, "output": "...", "success": true}],
     "answer": "...", "finish_reason": "stop", "scores": {"text": {"value": 1.0}}, "reward": 1.0,
     "error": null, "usage": {"calls": 1}, "duration_s": 0.5, "metadata": {}}

1. Only `winnow_rollout` (the version of the form) and `task` must be there; an unknown member is refused.
2. Without `answer` the last message of the assistant is the answer.
3. A reward or score that is NaN or infinite is unscored, not wrong, and told.
4. Set aside with their line: a task that differs from the one that its id stood for before, or whose verifier cannot
   be built.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, JsonValue

from core.errors import InputError
from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.opened import Opened
from core.importers.source import has_half_surrogates, parse_line, plain, storable
from core.record import Record, canonical_json
from core.rollout import Message, Score, Step, Task, Trajectory, Usage
from core.verifiers import check_task, make_verifier

__all__ = ["MARK", "VERSION", "WinnowJsonl"]

VERSION = 1
MARK = "winnow_rollout"

REWARD = "reward"
"""Name of the reward among the scores."""

_ODD = ("\\ud", "\\uD", "NaN", "Infinity")
_HUGE = re.compile(r"\d[eE]\+?\d{3}")

TOLD = {
    "reward": "A reward was no finite number and is unscored.",
    "score": "A score was no finite number and is unscored.",
    "cleaned": "Half characters or numbers that are not finite were replaced in a rollout.",
    "unsure": "A task cannot be verified here, only taken as scored in the file.",
}
"""What is told of a line, once with its count."""


class _Line(Record):
    """The members of a line, but for its mark."""

    task: Any
    replicate: int | None = Field(default=None, ge=0)
    model: str = ""
    messages: tuple[Message, ...] = ()
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    finish_reason: str | None = None
    scores: dict[str, Score] = Field(default_factory=dict)
    reward: float | None = None
    error: str | None = None
    usage: Usage = Usage()
    duration_s: float | None = Field(default=None, ge=0)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


@dataclass
class _Reading:
    """What is known of a file while it is read."""

    tasks: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Task id -> line, hashes of the task's fields."""
    newest: tuple[Any, Task] | None = None
    """The task of the line before, as it was written: lines of one task mostly stand together."""
    odd: Counter[str] = field(default_factory=Counter)


class WinnowJsonl:
    """The reader of this form."""

    name = "winnow_jsonl"
    title = "Winnow rollouts"
    brings = Brings(reward="yes, or verified here", repeats="yes", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return f'"{MARK}"'.encode() in opened.head

    def read(self, opened: Opened) -> Iterator[Found]:
        reading = _Reading()
        for number, raw in opened.lines():
            try:
                line = raw.decode()
                yield _read(number, line, reading)
            except UnicodeDecodeError as e:
                reason = f"the line is not UTF-8 (byte {e.start + 1} of it)"
                yield _aside(number, reason, raw.decode("utf-8", "replace"))
            except (ValueError, InputError, RecursionError) as e:
                reason = "the JSON is nested too deeply" if isinstance(e, RecursionError) else str(e)
                yield _aside(number, reason.removeprefix("rollout: ").rstrip("."), line)
            for what in reading.odd.elements():
                yield Remark(text=TOLD[what])
            reading.odd.clear()


def _aside(number: int, reason: str, raw: str) -> Aside:
    return Aside(place=f"line {number}", reason=storable(reason), raw=storable(raw[:10_000]))


def _read(number: int, line: str, reading: _Reading) -> Attempt:
    """One line; what it says of its task is checked against the lines before.

    Raises:
        ValueError, InputError: why it is set aside.
    """
    value = parse_line(line)
    if not isinstance(value, dict):
        raise ValueError("the line is no JSON object")
    if MARK not in value:
        raise ValueError(f"this is no Winnow rollout: {MARK!r} is missing")
    version = value.pop(MARK)
    if version is True or version != VERSION:
        raise ValueError(f"{MARK!r} is {str(version)[:40]}; this Winnow reads version {VERSION}")
    odd = Counter[str]()
    if _may_be_odd(line):
        _unscore(value, odd)
        value = _cleaned(value, odd)
    content = _Line.read(value, where="rollout")
    task = _task(number, content.task, reading)
    reading.odd += odd
    return _attempt(number, task, content)


def _may_be_odd(line: str) -> bool:
    """Whether a line may hold half a surrogate pair, or a number that is not finite (most lines cannot)."""
    return any(sign in line for sign in _ODD) or has_half_surrogates(line) or _HUGE.search(line) is not None


def _unscore(value: dict[str, Any], odd: Counter[str]) -> None:
    """Take out rewards and scores that are no finite numbers."""
    if _not_finite(value.get("reward")):
        value["reward"] = None
        odd["reward"] += 1
    scores = value.get("scores")
    for score in scores.values() if isinstance(scores, dict) else ():
        if isinstance(score, dict) and _not_finite(score.get("value")):
            was = f"not a finite number in the file ({score['value']}); {score.get('reason') or ''}"
            score["reason"] = was.rstrip("; ")
            score["value"] = None
            odd["score"] += 1


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _cleaned(value: dict[str, Any], odd: Counter[str]) -> Any:
    clean = plain(value)
    odd["cleaned"] += clean != value
    return clean


def _task(number: int, definition: Any, reading: _Reading) -> Task:
    if reading.newest is not None and reading.newest[0] == definition:
        return reading.newest[1]
    task = Task.read(definition, where="task")
    fields = task.model_dump(mode="json")
    hashes = tuple(hash(canonical_json(value)) for value in fields.values())
    if (known := reading.tasks.get(task.id)) is None:
        make_verifier(task.verifier)  # a spec that cannot be built would only be found in the next run
        reading.tasks[task.id] = (number, hashes)
        reading.odd["unsure"] += not _can_be_verified(task)
    elif differing := [name for name, a, b in zip(fields, hashes, known[1], strict=True) if a != b]:
        raise ValueError(f"task {task.id!r} has another {differing[0]} than in line {known[0]}")
    reading.newest = (definition, task)
    return task


def _can_be_verified(task: Task) -> bool:
    try:
        check_task(task)
    except InputError:
        return False
    return True


def _attempt(number: int, task: Task, content: _Line) -> Attempt:
    answer = content.answer
    if answer is None:
        said = [m.content for m in content.messages if m.role == "assistant"]
        answer = said[-1] if said else ""
    graded = content.reward is not None
    return Attempt(
        place=f"line {number}",
        task_id=task.id,
        question=task.question,
        expected=task.answer,
        task=task,
        model=content.model,
        repeat=content.replicate,
        trajectory=Trajectory(
            messages=content.messages, steps=content.steps, answer=answer, finish_reason=content.finish_reason
        ),
        scores={REWARD: Seen(value=content.reward)} if graded else {},
        reward=REWARD if graded else None,
        verdicts=content.scores,
        error=content.error or None,
        usage=content.usage,
        duration_s=content.duration_s,
        metadata=content.metadata,
    )
