"""What the OpenAI Agents SDK tells of its runs: dumped traces and spans (`object` "trace" and "trace.span"), and saved
states of runs (`RunState.to_json`).

1. A trace is one attempt. A span is written when it ends, so that children stand before their parents.
2. Tokens stand on the spans of model calls, and summed up on those of turns and tasks: only the former count.
3. A span of the Responses interface tells neither what went in nor what came out, unless the dump wrote it there.
4. `error` of a function's span is a failure, although its output is ordinary text.
5. Tasks are told apart by `task_id` in the metadata, else by `group_id`, which may also be a conversation: where two
   traces of a group ask different things, they are different tasks.
6. It has no reward: a side file names a trace by its id (`own_id`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Brings, Found, Remark, new_attempt, new_trajectory, new_usage
from core.importers.bundles import Bundles
from core.importers.dialects import conversation
from core.importers.getting import as_dict, as_int, as_list, as_said, as_text, at
from core.importers.lines import records_of, set_aside
from core.importers.opened import Opened
from core.importers.times import between, moment
from core.importers.traces import (
    ModelCall,
    Part,
    ToolRun,
    messages_in,
    most_frequent,
    question_in,
    size_of,
    told_of,
    within,
)
from core.rollout import Usage

_CALLS = ("generation", "response")
_BROKE_OFF = "Error in agent run"
"""What the SDK writes at an agent's span when an exception ended the run."""
_TOO_LONG = "Max turns exceeded"


class OpenAIAgents:
    """The format."""

    name = "openai_agents"
    title = "OpenAI Agents SDK traces"
    brings = Brings(reward="side file", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_kind_of(r) for r in opened.records if isinstance(r, dict))

    def read(self, opened: Opened) -> Iterator[Found]:
        traces = Bundles()
        for piece in records_of(opened):
            if isinstance(piece, Aside):
                yield piece
                continue
            kind, record = _kind_of(piece.value), piece.value
            if kind == "state":
                yield from _of_state(piece.place, record)
            elif kind == "batch":
                parts = [p for p in record["data"] if isinstance(p, dict) and _kind_of(p)]
                for part in parts:
                    size = piece.size // len(parts)
                    traces.add(_trace_of(part), piece.place, part, size)
            elif kind:
                traces.add(_trace_of(record), piece.place, record, piece.size)
            else:
                yield set_aside(piece.place, "neither a trace nor a span", as_said(record))
        for own, place, parts in traces:
            yield from _of_trace(own, place, parts)


def _kind_of(record: dict[str, Any]) -> str:
    """What a record is: "trace", "trace.span", "batch" (as it is sent to the dashboard), "state", "" for others."""
    if record.get("object") in ("trace", "trace.span") and isinstance(record.get("id"), str):
        return as_text(record["object"])
    if "$schemaVersion" in record and isinstance(record.get("generated_items"), list):
        return "state"
    if isinstance(record.get("data"), list) and any(_kind_of(as_dict(r)) for r in record["data"][:20]):
        return "batch"
    return ""


def _trace_of(record: dict[str, Any]) -> str:
    return as_text(record["id"] if record["object"] == "trace" else record.get("trace_id"))


def _of_trace(own: str, place: str, parts: list[dict[str, Any]]) -> Iterator[Found]:
    head = next((p for p in parts if p["object"] == "trace"), {})
    known = {as_text(p["id"]): p for p in parts if p["object"] == "trace.span"}
    if not known:
        yield set_aside(place, "a trace without spans", as_said(head))
        return
    spans = sorted((_part(k, s) for k, s in known.items()), key=lambda p: p.at)
    parents = {p.own: p.parent for p in spans}
    tools = {p.own: p for p in spans if p.kind == "function"}
    calls = [p for p in spans if p.kind in _CALLS]
    told = told_of(
        [_call_of(p) for p in calls if not within(p.own, parents, tools)],
        [_run_of(p) for k, p in tools.items() if not within(k, parents, tools)],
    )
    if calls and not told.conversation.messages:
        yield Remark(
            text="Spans of the Responses interface tell neither input nor output: only tools are known."
        )
    error, reason = _ending_of(spans, calls)
    seconds, begun = between(m for p in spans for m in (p.begun, p.ended))
    data = [as_dict(p.told.get("span_data")) for p in calls]
    metadata = as_dict(head.get("metadata"))
    agent = next((as_text(at(p.told, "span_data", "name")) for p in spans if p.kind == "agent"), "")
    facts: dict[str, JsonValue] = {
        "trace_id": own,
        "group_id": as_text(head.get("group_id")),
        "started_at": begun,
        "tool_runs_apart": told.apart,
    }
    task = as_text(metadata.get("task_id")).strip() or as_text(head.get("group_id")).strip()
    yield new_attempt(
        place=place,
        namespace=as_text(head.get("workflow_name")),
        task_id=task[:200] or None,
        question=told.asked or task or f"Trace {own} (its input was not recorded)",
        model=most_frequent(as_text(d.get("model")) for d in data),
        agent=agent,
        own_id=own or None,
        trajectory=new_trajectory(
            messages=told.conversation.messages,
            steps=told.conversation.steps,
            answer=told.conversation.answer,
            finish_reason=reason,
        ),
        error=error,
        usage=_usage_of([as_dict(d.get("usage")) for d in data]),
        duration_s=seconds,
        orphans=told.conversation.orphans,
        metadata={k: v for k, v in facts.items() if v},
    )


def _part(own: str, span: dict[str, Any]) -> Part:
    parent, kind = as_text(span.get("parent_id")), as_text(at(span, "span_data", "type"))
    begun, ended = moment(span.get("started_at")), moment(span.get("ended_at"))
    return Part(own, parent, kind, begun, ended, span)


def _call_of(part: Part) -> ModelCall:
    data = as_dict(part.told.get("span_data"))
    return ModelCall(
        at=part.at,
        size=size_of(data.get("input")),
        heard=lambda: messages_in(data.get("input"), "user"),
        said=lambda: messages_in(data.get("output") or data.get("response"), "assistant"),
    )


def _run_of(part: Part) -> ToolRun:
    data, error = as_dict(part.told.get("span_data")), as_dict(part.told.get("error"))
    return ToolRun(
        at=part.at,
        tool=as_text(data.get("name")),
        given=data.get("input"),
        returned=data.get("output"),
        failed=True if error else None,
        error=as_text(at(error, "data", "error")) or as_text(error.get("message")),
        duration_s=part.duration_s,
    )


def _ending_of(spans: list[Part], calls: list[Part]) -> tuple[str | None, str | None]:
    """(why it broke off, why it ended), where the spans tell."""
    if calls and (error := as_dict(calls[-1].told.get("error"))):
        return _message_of(error) or "the last call of the model failed", None
    for span in spans:
        error = as_dict(span.told.get("error"))
        if span.kind != "agent" or not error:
            continue
        message = as_text(error.get("message"))
        if message == _BROKE_OFF:
            return _message_of(error), None
        return None, "step limit" if message == _TOO_LONG else message[:200] or None
    return None, None


def _message_of(error: dict[str, Any]) -> str:
    detail = as_text(at(error, "data", "error")) or as_text(at(error, "data", "message"))
    return ": ".join(t for t in (as_text(error.get("message")), detail) if t)[:500]


def _usage_of(uses: list[dict[str, Any]]) -> Usage:
    return new_usage(
        calls=sum(as_int(u.get("requests")) or 1 for u in uses),
        prompt_tokens=sum(max(0, as_int(u.get("input_tokens")) or 0) for u in uses),
        completion_tokens=sum(max(0, as_int(u.get("output_tokens")) or 0) for u in uses),
    )


def _of_state(place: str, state: dict[str, Any]) -> Iterator[Found]:
    """The attempt that a saved state of a run holds."""
    items = [
        raw
        for i in as_list(state.get("generated_items"))
        if isinstance(raw := as_dict(i).get("raw_item"), dict)
    ]
    told = conversation([*messages_in(state.get("original_input"), "user"), *items])
    own = as_text(at(state, "trace", "id")) or as_text(state.get("conversation_id"))
    used = as_dict(at(state, "context", "usage"))
    asked = question_in(state.get("original_input"))
    agent = state.get("current_agent")
    yield new_attempt(
        place=place,
        namespace=as_text(at(state, "trace", "workflow_name")),
        question=asked if asked.strip() else f"Run {own} (its input was not recorded)",
        agent=as_text(as_dict(agent).get("name")) or as_text(agent),
        own_id=own or None,
        trajectory=new_trajectory(messages=told.messages, steps=told.steps, answer=told.answer),
        usage=_usage_of([used] if used else []),
        orphans=told.orphans,
        metadata={"turns": as_int(state.get("current_turn"))},
    )
