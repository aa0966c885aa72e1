"""Winnow's own form of recorded rollouts: JSONL, one rollout a line.

    {"winnow_rollout": 1, "task": {...}, "replicate": 0, "model": "...",
     "messages": [{"role": "user", "content": "..."}],
     "steps": [{"tool": "...", "parameters": {}, "output": "...", "success": true}],
     "answer": "...", "finish_reason": "stop", "scores": {"text": {"value": 1.0}}, "reward": 1.0,
     "error": null, "usage": {"calls": 1}, "duration_s": 0.5, "metadata": {}}

1. Only `winnow_rollout` (the version of the form) and `task` must be there; an unknown member is refused.
2. Without `answer` the last message of the assistant is the answer.
3. A reward or score that is NaN or infinite is unscored, not wrong, and counted in a note.
4. Replicate numbers that are missing are given in the order of the file, per task and model.
5. Set aside with their line: the same task, model and replicate again; a task that differs from the one that
   its id stood for before, or whose verifier cannot be built.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, JsonValue

from core.errors import InputError
from core.importers.recorded import Recorded, RecordedFile
from core.importers.source import Rejected, decode, has_half_surrogates, lines_of, parse_line, plain, rejected
from core.record import Record
from core.rollout import Message, Score, Step, Task, Trajectory, Usage
from core.verifiers import check_task, make_verifier

__all__ = ["MARK", "VERSION", "Recorded", "RecordedFile", "WinnowJsonl"]

VERSION = 1
MARK = "winnow_rollout"

_ODD = ("\\ud", "\\uD", "NaN", "Infinity")
_HUGE = re.compile(r"\d[eE]\+?\d{3}")


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

    tasks: dict[str, tuple[int, Any, Task]] = field(default_factory=dict)
    """Task id -> line, definition as it was written, task."""
    taken: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """(task id, model, replicate) -> line."""
    counts: Counter[str] = field(default_factory=Counter)


class WinnowJsonl:
    """The importer of this form."""

    def recognises(self, data: bytes, name: str) -> bool:
        head = data[:1_000_000]
        return any(f'"{MARK}"'.encode(encoding) in head for encoding in ("utf-8", "utf-16-le", "utf-16-be"))

    def read(self, data: bytes, name: str) -> RecordedFile:
        text, notes = decode(data, name)
        reading = _Reading()
        numbered: list[tuple[int, Task, _Line]] = []
        aside: list[Rejected] = []
        for number, line in lines_of(text):
            try:
                numbered.append((number, *_read(number, line, reading)))
            except (ValueError, InputError, RecursionError) as e:
                reason = "the JSON is nested too deeply" if isinstance(e, RecursionError) else str(e)
                aside.append(rejected(number, reason.removeprefix("rollout: ").rstrip("."), line))
        rollouts = _number(numbered, reading)
        return RecordedFile(
            format="winnow_jsonl",
            rollouts=tuple(rollouts),
            rejected=tuple(aside),
            notes=(*notes, *_notes(reading, rollouts)),
            content_hash=hashlib.sha256(data).hexdigest(),
        )


def _read(number: int, line: str, reading: _Reading) -> tuple[Task, _Line]:
    """One line; what it says of its task and its number is checked against the lines before.

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
    if content.replicate is not None:
        key = (task.id, content.model, content.replicate)
        if key in reading.taken:
            raise ValueError(
                f"replicate {content.replicate} of task {task.id!r} with model {content.model!r} "
                f"is already in line {reading.taken[key]}"
            )
        reading.taken[key] = number
    reading.counts += odd
    return task, content


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
            score["reason"] = (
                f"not a finite number in the file ({score['value']}); {score.get('reason') or ''}".rstrip(
                    "; "
                )
            )
            score["value"] = None
            odd["score"] += 1


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _cleaned(value: dict[str, Any], odd: Counter[str]) -> Any:
    clean = plain(value)
    odd["cleaned"] += clean != value
    return clean


def _task(number: int, definition: Any, reading: _Reading) -> Task:
    task_id = definition.get("id") if isinstance(definition, dict) else None
    known = reading.tasks.get(task_id) if isinstance(task_id, str) else None
    if known is not None and known[1] == definition:
        return known[2]
    task = Task.read(definition, where="task")
    if known is None:
        make_verifier(task.verifier)  # a spec that cannot be built would only be found in the next run
        reading.tasks[task.id] = (number, definition, task)
        return task
    differing = [name for name in Task.model_fields if getattr(task, name) != getattr(known[2], name)]
    if differing:
        raise ValueError(f"task {task.id!r} has another {differing[0]} than in line {known[0]}")
    return known[2]


def _number(numbered: list[tuple[int, Task, _Line]], reading: _Reading) -> list[Recorded]:
    """Give replicate numbers to those without, now that it is known which are taken."""
    rollouts = []
    following: Counter[tuple[str, str]] = Counter()
    for number, task, content in numbered:
        replicate = content.replicate
        if replicate is None:
            attempt = (task.id, content.model)
            while (*attempt, following[attempt]) in reading.taken:
                following[attempt] += 1
            replicate = following[attempt]
            following[attempt] += 1
            reading.counts["numbered"] += 1
        rollouts.append(_recorded(number, task, content, replicate))
    return rollouts


def _recorded(number: int, task: Task, content: _Line, replicate: int) -> Recorded:
    answer = content.answer
    if answer is None:
        said = [m.content for m in content.messages if m.role == "assistant"]
        answer = said[-1] if said else ""
    return Recorded(
        task=task,
        replicate=replicate,
        model=content.model,
        trajectory=Trajectory(
            messages=content.messages, steps=content.steps, answer=answer, finish_reason=content.finish_reason
        ),
        scores=content.scores,
        reward=content.reward,
        error=content.error or None,
        usage=content.usage,
        duration_s=content.duration_s,
        metadata=content.metadata,
        line=number,
    )


def _notes(reading: _Reading, rollouts: list[Recorded]) -> list[str]:
    counts = reading.counts
    notes = []
    if counts["reward"]:
        notes.append(f"{counts['reward']} rewards were no finite number and are stored as unscored")
    if counts["score"]:
        notes.append(f"{counts['score']} scores were no finite number and are stored as unscored")
    if counts["cleaned"]:
        notes.append(
            f"in {counts['cleaned']} rollouts half characters or numbers that are not finite were replaced"
        )
    if counts["numbered"]:
        notes.append(
            f"{counts['numbered']} rollouts had no replicate number and were numbered in their order"
        )
    unsure: list[str] = []
    for task in {r.task.id: r.task for r in rollouts}.values():
        try:
            check_task(task)
        except InputError as e:
            unsure.append(str(e))
    if unsure:
        notes.append(
            f"{len(unsure)} tasks cannot be verified here, only taken as scored in the file: {unsure[0]}"
        )
    return notes
