"""Traces of verifiers 1 (`traces.jsonl` of 0.4, and what prime-rl keeps): one episode a line, one or more traces in it.

1. Each trace is an attempt; one without rewards beside one with rewards (a judge, a user that was played) is none.
2. The reward is the sum of score times weight over the named `rewards`; `{}` or null means that nothing was scored,
   and so does a null among them.
3. The messages of a trace are the nodes of a graph, each stored once; where it branches (a compacted history, agents
   beside each other) all of them are read in the order in which they came, and what only tells again what stood there
   before is left out.
4. Tokens are counted once for each call to the model; those of judges (`extra_usage`) are not the agent's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Attempt,
    Brings,
    Found,
    Remark,
    Seen,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.dialects import conversation, text_of_content
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_seen, as_text, at
from core.importers.lines import nothing_done, objects_of, set_aside
from core.importers.opened import Opened
from core.rollout import Usage


class VerifiersV1:
    """The format of verifiers since its version 1."""

    name = "verifiers_v1"
    title = "verifiers traces (1)"
    brings = Brings(reward="yes", repeats="in order", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_is_episode(record) or _is_trace(record) for record in opened.records)

    def read(self, opened: Opened) -> Iterator[Found]:
        for line in objects_of(opened):
            if isinstance(line, Aside):
                yield line
            elif _is_episode(line.value):
                yield from _episode(line.place, line.value)
            elif _is_trace(line.value):
                yield from _episode(line.place, {"traces": [line.value]})
            else:
                yield set_aside(line.place, "it is no episode: 'traces' is missing", json.dumps(line.value))


def _is_episode(value: Any) -> bool:
    return isinstance(at(value, "traces"), list) and "task" in value and "ok" in value


def _is_trace(value: Any) -> bool:
    return isinstance(at(value, "nodes"), list) and "task" in value and "rewards" in value


def _episode(place: str, episode: dict[str, Any]) -> Iterator[Found]:
    traces = [t for t in as_list(episode.get("traces")) if isinstance(t, dict)]
    if not traces:
        yield _attempt(
            place, episode, {"task": episode.get("task"), "errors": episode.get("errors"), "ok": False}
        )
    rewarded = any(as_dict(t.get("rewards")) for t in traces)
    for number, trace in enumerate(traces):
        if len(_leaves(as_list(trace.get("nodes")))) > 1:
            yield Remark(
                text="The messages of a trace branch; they were read in the order in which they came."
            )
        where = place if len(traces) == 1 else f"{place}, trace {number + 1}"
        attempt = _attempt(where, episode, trace)
        if _is_empty(attempt):
            yield nothing_done(where, json.dumps(trace))
            continue
        helped = rewarded and attempt.error is None and not as_dict(trace.get("rewards"))
        yield attempt.model_copy(update={"ends": False}) if helped else attempt


def _is_empty(attempt: Attempt) -> bool:
    """Whether nothing came of it, and nothing tells why: neither an error nor what stopped it."""
    tried = attempt.trajectory
    silent = not tried.answer and not tried.steps and all(m.role != "assistant" for m in tried.messages)
    return silent and not attempt.error and not tried.finish_reason


def _attempt(place: str, episode: dict[str, Any], trace: dict[str, Any]) -> Attempt:
    task = as_dict(trace.get("task")) or as_dict(episode.get("task"))
    data = as_dict(task.get("data"))
    talk = conversation(_told(as_list(trace.get("nodes"))))
    users = [m.content for m in talk.messages if m.role == "user"]
    systems = [m.content for m in talk.messages if m.role == "system"]
    key = next((text for k in ("key", "hash") if (text := as_text(task.get(k)))), "") or as_text(
        data.get("idx")
    )
    expected = next(
        (data[k] for k in ("answer", "expected", "ground_truth") if data.get(k) is not None), None
    )
    stop = as_text(trace.get("stop_condition"))
    return new_attempt(
        place=place,
        namespace=as_text(at(episode, "env", "name")) or as_text(at(episode, "env", "id")),
        task_id=key[:200] or None,
        question=_asked(data) or "".join(users[:1]) or f"task {key}",
        system=as_text(data.get("system_prompt")) or "\n".join(systems),
        expected=as_said(expected) or None,
        model=_model(trace),
        agent=_agent(trace),
        run=as_text(at(episode, "run", "id")),
        own_id=as_text(trace.get("id")) or None,
        trajectory=new_trajectory(
            messages=talk.messages,
            steps=talk.steps,
            answer=as_text(trace.get("root_reply")) or talk.answer,
            finish_reason=stop or None,
        ),
        scores=_scores(trace),
        reward="reward",
        error=_error(episode, trace),
        usage=_usage(trace),
        duration_s=_duration(trace),
        orphans=talk.orphans,
        metadata=_facts(episode, trace),
    )


def _asked(data: dict[str, Any]) -> str:
    """The task's prompt: text, or the last user's turn of its messages."""
    prompt = next((data[k] for k in ("prompt", "question", "instruction") if data.get(k)), None)
    if isinstance(prompt, list):
        turns = [text_of_content(m.get("content")) for m in prompt if at(m, "role") == "user"]
        return turns[-1] if turns else ""
    return as_text(prompt)


def _leaves(nodes: list[Any]) -> list[int]:
    parents = {at(node, "parent") for node in nodes if isinstance(at(node, "parent"), int)}
    return [number for number in range(len(nodes)) if number not in parents]


def _told(nodes: list[Any]) -> Iterator[Any]:
    """The messages of the nodes, but for those of later branches that tell again what stood there before."""
    spoken, branches = False, len(_leaves(nodes)) > 1
    seen: set[tuple[str, str, str]] = set()
    for node in nodes:
        message = as_dict(at(node, "message"))
        role, sampled = as_text(message.get("role")), at(node, "sampled") is True
        key = (role, text_of_content(message.get("content")), as_text(message.get("tool_call_id")))
        again = (spoken if role == "assistant" else key in seen) and branches and not sampled
        spoken = spoken or sampled
        seen.add(key)
        if message and not again:
            yield message


def _model(trace: dict[str, Any]) -> str:
    return as_text(at(trace, "agent", "config", "model")) or next(
        (model for call in as_list(trace.get("calls")) if (model := as_text(at(call, "model")))), ""
    )


def _agent(trace: dict[str, Any]) -> str:
    """The harness, and the part that the agent plays in the environment where it has a name of its own."""
    harness, part = (
        as_text(at(trace, "agent", "config", "harness", "id")),
        as_text(at(trace, "agent", "name")),
    )
    return " ".join(name for name in (harness, part) if name not in ("", "null", "agent"))


def _scores(trace: dict[str, Any]) -> dict[str, Seen]:
    rewards = {as_text(k): v for k, v in as_dict(trace.get("rewards")).items()}
    scores = {as_text(k): as_seen(v) for k, v in as_dict(trace.get("metrics")).items() if v is not None}
    total: float | None = 0.0 if rewards else None
    for name, reward in rewards.items():
        score = as_number(reward["score"] if isinstance(reward, dict) and "score" in reward else reward)
        weight = as_number(at(reward, "weight"))
        scores[name if name != "reward" else "rewards.reward"] = Seen(
            value=score, raw="" if reward else "null"
        )
        counted = None if score is None else score * (1.0 if weight is None else weight)
        total = None if total is None or counted is None else total + counted
    return {**scores, "reward": Seen(value=as_number(total))}


def _error(episode: dict[str, Any], trace: dict[str, Any]) -> str | None:
    """The last error of an attempt that was not brought to its end; a limit that was graded all the same is none."""
    if trace.get("ok") is True or (trace.get("is_timeout") is True and as_dict(trace.get("rewards"))):
        return None
    errors = as_list(trace.get("errors")) or as_list(episode.get("errors"))
    if not errors:
        return None
    kind, message = as_text(at(errors[-1], "type")), as_text(at(errors[-1], "message"))
    return ": ".join(part for part in (kind, message) if part) or as_said(errors[-1])[:500] or "it broke off"


def _usage(trace: dict[str, Any]) -> Usage:
    used = [as_dict(at(call, "usage")) for call in as_list(trace.get("calls"))]
    used = [usage for usage in used if usage]
    return new_usage(
        calls=len(used),
        prompt_tokens=sum(max(0, as_int(u.get("prompt_tokens")) or 0) for u in used),
        completion_tokens=sum(max(0, as_int(u.get("completion_tokens")) or 0) for u in used),
    )


def _duration(trace: dict[str, Any]) -> float | None:
    begun, ended = (as_number(at(trace, "timing", "agent", k)) for k in ("start", "end"))
    return ended - begun if begun is not None and ended is not None and ended >= begun else None


def _facts(episode: dict[str, Any], trace: dict[str, Any]) -> dict[str, JsonValue]:
    facts: dict[str, Any] = {
        "stop_condition": trace.get("stop_condition"),
        "group": at(episode, "group", "id"),
        "episode": episode.get("id"),
        "step": at(episode, "run", "work", "step"),
        "timeout": True if trace.get("is_timeout") is True else None,
    }
    return {name: as_text(value) for name, value in facts.items() if as_text(value)}
