"""Results of verifiers 0.1 (`vf-eval`): `results.jsonl`, one rollout a line, and `metadata.json` beside it.

1. `reward` is the reward. Where a row has an `error`, its 0.0 only means that the rollout broke off: it is an
   infrastructure error. Its metrics are scores too; the copies of them at the top level of a row are not read twice.
2. A task is an `example_id`; rows of the same id are its attempts and have no number of their own.
3. A tool's result carries no mark: what an exception became is ordinary text, so most outcomes of tools are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, Seen
from core.importers.dialects import Conversation, conversation, text_of_content
from core.importers.documents import beside, whole_of
from core.importers.getting import as_dict, as_int, as_json, as_list, as_number, as_seen, as_text, at
from core.importers.lines import nothing_done, objects_of, set_aside
from core.importers.opened import Opened
from core.rollout import Message, Trajectory, Usage

_NO_SCORE = {
    "example_id",
    "id",
    "reward",
    "generation_ms",
    "scoring_ms",
    "total_ms",
    "is_completed",
    "is_truncated",
}
"""Members of a row that are numbers or truth values and no metrics."""

MAX_INFO = 2_000
"""Characters of a row's `info` that are kept with the task."""


class VerifiersLegacy:
    """The format of verifiers before its version 1."""

    name = "verifiers_legacy"
    title = "verifiers results (0.1)"
    brings = Brings(reward="yes", repeats="in order", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_row(record) for record in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        about = _metadata(opened)
        if not about:
            yield Remark(text="No metadata.json stands beside the results, so the model is not known.")
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
            elif not _is_row(line.value):
                missing = next(k for k in ("example_id", "completion", "reward") if k not in line.value)
                yield set_aside(
                    line.place, f"it is no rollout: {missing!r} is missing", json.dumps(line.value)
                )
            else:
                found = _attempt(line.place, line.value, about)
                yield (
                    nothing_done(line.place, json.dumps(line.value))
                    if _is_empty(line.value, found)
                    else found
                )


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and all(k in value for k in ("example_id", "completion", "reward"))


def _is_empty(row: dict[str, Any], attempt: Attempt) -> bool:
    """Whether nothing came of it, and nothing tells why: neither an error nor what stopped it."""
    told = attempt.error or attempt.trajectory.finish_reason
    return not told and conversation(_messages(row.get("completion"), "assistant")).silent


def _metadata(opened: Opened) -> dict[str, Any]:
    return as_dict(whole_of(beside(opened, "metadata.json")))


def _attempt(place: str, row: dict[str, Any], about: dict[str, Any]) -> Attempt:
    prompt = _messages(row.get("prompt"), "user")
    talk = conversation([*prompt, *_messages(row.get("completion"), "assistant")])
    example = as_text(row.get("example_id"))
    cut = row.get("is_truncated") is True
    stop = as_text(row.get("stop_condition"))
    return Attempt(
        place=place,
        namespace=_namespace(row, about),
        task_id=example or None,
        question=_question(prompt, talk) or f"example {example}",
        system="\n".join(m.content for m in talk.messages if m.role == "system"),
        expected=as_text(row.get("answer")) or None,
        task_metadata=_info(row),
        model=as_text(about.get("model")),
        trajectory=Trajectory(
            messages=talk.messages,
            steps=talk.steps,
            answer=talk.answer,
            finish_reason="length" if cut else stop or None,
        ),
        scores=_scores(row),
        reward="reward",
        error=_error(row.get("error")),
        usage=_usage(row, talk, len(prompt)),
        duration_s=_duration(row),
        orphans=talk.orphans,
        metadata={"stop_condition": stop} if stop else {},
    )


def _messages(value: Any, role: str) -> list[Any]:
    """The messages of a prompt or a completion; one that is plain text was made without chat markup."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return as_list(value)


def _question(prompt: list[Any], talk: Conversation) -> str:
    """The last thing that the prompt says as the user; without a prompt, the first that a user said at all."""
    asked = [text_of_content(m.get("content")) for m in prompt if at(m, "role") == "user"]
    if asked:
        return asked[-1]
    said: list[Message] = [m for m in talk.messages if m.role == "user"]
    return said[0].content if said else ""


def _namespace(row: dict[str, Any], about: dict[str, Any]) -> str:
    """The environment, and the part of it that a row belongs to where it is a group of environments."""
    environment, part = as_text(about.get("env_id")), as_text(row.get("task"))
    if part in ("", "default", environment):
        return environment
    return f"{environment}/{part}" if environment else part


def _info(row: dict[str, Any]) -> dict[str, JsonValue]:
    info = as_json(row.get("info"))
    return {"info": info} if info and len(json.dumps(info)) <= MAX_INFO else {}


def _scores(row: dict[str, Any]) -> dict[str, Seen]:
    metrics = row.get("metrics")
    named = metrics if isinstance(metrics, dict) else {k: v for k, v in row.items() if k not in _NO_SCORE}
    scores = {as_text(k): as_seen(v) for k, v in named.items() if as_number(v) is not None}
    return {**scores, "reward": as_seen(row.get("reward"))}


def _error(value: Any) -> str | None:
    """What broke the rollout off: a name, a text, or the chain of causes."""
    if not value:
        return None
    told = next(
        (as_text(at(value, k)) for k in ("error_chain_repr", "error_chain_str", "error") if at(value, k)), ""
    )
    return told or as_text(value) or "the rollout broke off"


def _usage(row: dict[str, Any], talk: Conversation, prompted: int) -> Usage:
    tokens = as_dict(row.get("token_usage"))
    calls = sum(at(m, "role") == "assistant" for m in as_list(row.get("completion")))
    return Usage(
        calls=calls,
        prompt_tokens=max(0, as_int(tokens.get("input_tokens")) or 0),
        completion_tokens=max(0, as_int(tokens.get("output_tokens")) or 0),
    )


def _duration(row: dict[str, Any]) -> float | None:
    seconds = as_number(at(row, "timing", "total"))
    if seconds is None and (ms := as_number(at(row, "timing", "total_ms"))) is not None:
        seconds = ms / 1000
    return seconds if seconds is not None and seconds >= 0 else None
