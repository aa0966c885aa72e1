r"""Rollouts that verl's trainer dumps: `<rollout_data_dir or validation_data_dir>/<step>.jsonl`, one a line.

    {"input": "system\n...", "output": "...", "gts": "42", "score": 1.0, "step": 3, "acc": true, ...}

1. `score` is the reward; every further column that is a number is a score of the reward function.
2. There is no task id and no repeat number: the rollouts of one group have the same input within one step, and
   another step is another policy. `uid`, where it is written, is made anew at each step.
3. Text is decoded without special tokens: of the chat only the names of the roles are left.
4. The newest writer puts several outputs of one rollout (`uid` = sample_rollout_output) on lines one after the other:
   they are one attempt, whose last output counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Brings, Found, Remark, Seen, new_attempt, new_trajectory
from core.importers.dialects import conversation
from core.importers.getting import as_int, as_json, as_said, as_seen, as_text
from core.importers.json_text import parsed
from core.importers.lines import Piece, objects_of, set_aside
from core.importers.markup import messages_of, prompt_of
from core.importers.opened import Opened

_OWN = {"input", "output", "gts", "score", "step", "uid", "request_id", "reward"}
MAX_TEXT = 500
"""Characters of a further column that is kept beside the attempt."""


class Verl:
    """The format."""

    name = "verl"
    title = "verl rollout dump"
    brings = Brings(reward="yes", repeats="in order", steps="no")

    def recognises(self, opened: Opened) -> bool:
        return any(
            isinstance(r, dict)
            and r.keys() >= {"input", "output", "score", "step"}
            and isinstance(r["input"], str)
            for r in opened.records
        )

    def read(self, opened: Opened) -> Iterator[Found]:
        held: list[Piece] = []
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
                continue
            if held and not (_session(line) and _session(line) == _session(held[-1])):
                yield from _attempt(held)
                held = []
            held.append(line)
        if held:
            yield from _attempt(held)


def _session(line: Piece) -> str:
    """Which rollout an output belongs to, where the file numbers outputs; "" where it does not."""
    parts = as_text(line.value.get("uid")).rsplit("_", 2)
    return "_".join(parts[:2]) if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal() else ""


def _attempt(lines: list[Piece]) -> Iterator[Found]:
    first, last = lines[0], lines[-1]
    given, output = first.value.get("input"), last.value.get("output")
    if not isinstance(given, str) or not given.strip():
        yield set_aside(first.place, "there is no input", as_said(first.value))
        return
    if not isinstance(output, str):
        yield set_aside(last.place, "there is no output", as_said(last.value))
        return
    if len(lines) > 1:
        yield Remark(
            text="Several outputs of one rollout stand on lines of their own; they are read as one attempt."
        )
    prompt = prompt_of(as_text(given))
    # a later input holds what came before: the last one, with its output, tells the whole
    given_last = prompt if len(lines) == 1 else prompt_of(as_text(last.value.get("input")))
    said = conversation(messages_of(given_last, as_text(output)))
    value = last.value
    step = as_int(value.get("step"))
    yield new_attempt(
        place=first.place,
        question=prompt.question,
        system=prompt.system,
        expected=_expected(value.get("gts")),
        agent="" if step is None else f"step {step}",
        trajectory=new_trajectory(messages=said.messages, steps=said.steps, answer=said.answer),
        scores=_scores(value),
        reward="score",
        orphans=said.orphans,
        metadata=_metadata(value, step),
    )


def _expected(value: Any) -> str | None:
    """The right answer; it may be JSON in a string, or a list or object that a reward function takes."""
    if value is None:
        return None
    if isinstance(value, str) and value.startswith('"'):
        with contextlib.suppress(ValueError, RecursionError):
            value = parsed(value)
    return as_said(value) or None


def _scores(value: dict[str, Any]) -> dict[str, Seen]:
    """`score` first, then every further column that is a number or a truth value (also one written as text)."""
    scores = {"score": as_seen(value.get("score"))}
    for name, member in value.items():
        if name in _OWN - {"reward"} or not isinstance(member, bool | int | float):
            continue
        scores[as_text(name)] = as_seen(member)
    return scores


def _metadata(value: dict[str, Any], step: int | None) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {} if step is None else {"step": step}
    for name, member in value.items():
        if name in ("uid", "request_id") or (name not in _OWN and isinstance(member, str)):
            kept[as_text(name)] = as_json(member[:MAX_TEXT] if isinstance(member, str) else member)
    return kept
