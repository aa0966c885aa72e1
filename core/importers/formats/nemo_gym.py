"""Rollouts of NVIDIA NeMo Gym: `*rollouts.jsonl`, one a line, as items of OpenAI's Responses.

    {"responses_create_params": {"input": [...]}, "response": {"output": [...], "usage": {...}, "model": "..."},
     "reward": 1.0, "_ng_task_index": 0, "_ng_rollout_index": 3, "agent_ref": {"name": "..."}, ...}

1. `reward` is the reward, of any range. Lines stand in the order in which the rollouts ended.
2. `_ng_task_index` is the task's place in its data set: the task's id only where the line has none of the data set's.
3. `mask_sample` says that a rollout must not be learned from: an infrastructure error, whatever its reward. Without
   that mark, an error of the agent with nothing earned is one; `agent_error_kind` beside `mask_sample: false` is none.
4. An environment with states (`terminated` stands in the line) adds its first observation to the input; the task is
   what stands before that.
5. Calls that stand in the input are part of the task, and no steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found
from core.importers.dialects import Conversation, conversation
from core.importers.getting import as_dict, as_int, as_json, as_list, as_number, as_said, as_seen, as_text, at
from core.importers.lines import Piece, objects_of, set_aside
from core.importers.opened import Opened
from core.rollout import Message, Trajectory, Usage

MAX_TEXT = 500
"""Characters of a further member that is kept beside the attempt."""

_OWN = {"responses_create_params", "response", "reward", "_ng_task_index", "_ng_rollout_index", "agent_ref"}
_IDS = ("task_id", "instance_id", "question_id", "problem_id", "uuid", "id")
_ANSWERS = ("expected_answer", "answer", "ground_truth", "target", "label")
_QUESTIONS = ("problem_statement", "instruction", "question", "problem", "task")
_UNIQUE = re.compile(r"[0-9a-f]{24,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")


class NemoGym:
    """The format."""

    name = "nemo_gym"
    title = "NeMo Gym rollouts"
    brings = Brings(reward="yes", repeats="yes", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        members = {"responses_create_params", "response", "reward"}
        return any(isinstance(r, dict) and r.keys() >= members for r in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        for line in objects_of(opened):
            yield line if isinstance(line, Aside) else _attempt(line)


def _attempt(line: Piece) -> Attempt | Aside:
    value = line.value
    given = as_dict(value.get("responses_create_params"))
    response = as_dict(value.get("response"))
    if not given or ("response" not in value and "reward" not in value):
        return set_aside(
            line.place, "this is no rollout: it has no input, or neither response nor reward", as_said(value)
        )
    asked = conversation([*_system(given), *_input(given)])
    task_id = _task_id(value, given)
    question = _question(asked, given, "terminated" in value) or (f"task {task_id}" if task_id else "")
    if not question:
        return set_aside(line.place, "neither a question nor a task id is told", as_said(value))
    said = conversation(as_list(response.get("output")))
    reward = as_seen(value.get("reward"))
    return Attempt(
        place=line.place,
        namespace=as_text(at(given, "metadata", "dataset_name")) or as_text(value.get("dataset")),
        task_id=task_id or None,
        question=question,
        system="\n\n".join(m.content for m in asked.messages if m.role == "system"),
        expected=_expected(value, given),
        model=as_text(response.get("model")),
        agent=as_text(at(value, "agent_ref", "name")),
        repeat=as_int(value.get("_ng_rollout_index")),
        own_id=_own_id(response),
        trajectory=Trajectory(
            messages=(*asked.messages, *said.messages),
            steps=said.steps,
            answer=said.answer,
            finish_reason=_finish(value, response),
        ),
        scores={"reward": reward},
        reward="reward",
        error=_error(value, response, reward.value),
        usage=_usage(response, said),
        duration_s=_seconds(value.get("agent_run_time")),
        orphans=said.orphans,
        metadata=_metadata(value),
    )


def _system(given: dict[str, Any]) -> list[dict[str, Any]]:
    instructions = as_text(given.get("instructions"))
    return [{"role": "system", "content": instructions}] if instructions else []


def _input(given: dict[str, Any]) -> list[Any]:
    items = given.get("input")
    return [{"role": "user", "content": items}] if isinstance(items, str) and items else as_list(items)


def _question(asked: Conversation, given: dict[str, Any], game: bool) -> str:
    """What the user says; of several turns all, each with its role; else what the data set tells of the task.

    Args:
        asked: the input.
        given: what the input stands in.
        game: whether it is an environment with states: what follows the first message is its first observation, which
            differs between the rollouts of one task.
    """
    said: list[Message] = [m for m in asked.messages if m.role != "system" and m.content]
    if len(said) == 1 or (said and game):
        return said[0].content
    if said:
        return "\n\n".join(f"{m.role}: {m.content}" for m in said)
    return next((text for k in _QUESTIONS if (text := as_text(at(given, "metadata", k)))), "")


def _task_id(value: dict[str, Any], given: dict[str, Any]) -> str:
    for holder in (value, as_dict(given.get("metadata")), as_dict(value.get("verifier_metadata"))):
        for key in _IDS:
            if text := as_text(holder.get(key)):
                return text
    index = as_int(value.get("_ng_task_index"))
    return "" if index is None else str(index)


def _expected(value: dict[str, Any], given: dict[str, Any]) -> str | None:
    holders = (value, as_dict(value.get("verifier_metadata")), as_dict(given.get("metadata")))
    found = next((h[k] for h in holders for k in _ANSWERS if h.get(k) not in (None, "")), None)
    return None if found is None else as_said(found)


def _own_id(response: dict[str, Any]) -> str | None:
    """The id of the response, where it is unique for good: some harnesses number their responses."""
    own = as_text(response.get("id"))
    return own if _UNIQUE.search(own) else None


def _error(value: dict[str, Any], response: dict[str, Any], reward: float | None) -> str | None:
    kinds = (as_text(value.get(k)) for k in ("error_kind", "agent_error_kind", "error"))
    kind = next((k for k in kinds if k), "")
    masked = value.get("mask_sample")
    if masked is True:
        return f"the harness masked it: {kind}" if kind else "the harness masked it"
    if not response:
        return kind or "no response was recorded"
    failed = as_dict(response.get("error"))
    if failed and not reward:
        return as_text(failed.get("message")) or "the model's response failed"
    return kind if kind and masked is None and not reward else None


def _finish(value: dict[str, Any], response: dict[str, Any]) -> str | None:
    if value.get("agent_timed_out") is True:
        return "time limit"
    if value.get("truncated") is True:
        return "step limit"
    reason = as_text(at(response, "incomplete_details", "reason"))
    return "length" if reason == "max_output_tokens" else reason or None


def _usage(response: dict[str, Any], said: Conversation) -> Usage:
    used = as_dict(response.get("usage"))
    prompt, completion = as_int(used.get("input_tokens")), as_int(used.get("output_tokens"))
    if prompt is None and completion is None:
        return Usage()
    calls = sum(m.role == "assistant" for m in said.messages)
    return Usage(calls=calls, prompt_tokens=max(prompt or 0, 0), completion_tokens=max(completion or 0, 0))


def _seconds(value: Any) -> float | None:
    seconds = as_number(value)
    return seconds if seconds is not None and seconds >= 0 else None


def _metadata(value: dict[str, Any]) -> dict[str, JsonValue]:
    """Members of the line that are numbers, truth values or short texts; `info` of a gym environment as well."""
    kept: dict[str, JsonValue] = {}
    for name, member in [*value.items(), *as_dict(value.get("info")).items()]:
        if name not in _OWN and isinstance(member, bool | int | float | str) and len(str(member)) <= MAX_TEXT:
            kept[as_text(name)] = as_json(member)
    return kept
