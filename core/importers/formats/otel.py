"""Traces of OpenTelemetry: OpenInference (Phoenix, Arize) and the conventions for generative AI, as OTLP JSON, as
JSON or JSONL of spans, and as a data frame in Parquet.

1. A trace is one attempt. Its spans may stand anywhere in the file.
2. A call of a model usually repeats what was said before, so that the longest one tells the whole conversation. Its
   messages stand in the newest form (`gen_ai.input.messages`), in events (`gen_ai.user.message`), key by key
   (`gen_ai.prompt.0.role`), or as OpenInference writes them (`llm.input_messages`); often they are not there at all.
3. A tool's run failed where its status is ERROR; where the status is unset, nothing is told.
4. Tokens are those of the outermost calls of a model; only where there are none, those of the root.
5. What lies within a tool's run is a sub-agent's, within an EVALUATOR a judge's: neither is the agent's conversation.
6. Scores come from events `gen_ai.evaluation.result`; the user says which is the reward.
7. A root whose status is ERROR is an infrastructure error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from core.importers.bundles import Bundles
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_seen, as_text
from core.importers.lines import set_aside
from core.importers.opened import Opened
from core.importers.parquet import column_types
from core.importers.rows import pieces_of
from core.importers.spans import Attributes, Span, restored, spans_in
from core.importers.times import between
from core.importers.traces import (
    ModelCall,
    ToolRun,
    messages_in,
    most_frequent,
    output_in,
    question_in,
    size_of,
    told_of,
    unpacked,
    within,
)
from core.rollout import Usage

_KINDS = {"LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "agent", "EVALUATOR": "judge"}
_MODEL_OPERATIONS = {"chat", "text_completion", "generate_content", "completion", "message_creation"}
_AGENT_OPERATIONS = {"invoke_agent", "create_agent", "invoke_workflow"}
_QUESTIONS = ("input.value", "gen_ai.input.messages", "traceloop.entity.input")
_INPUTS = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt", "input.value")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value", "tool.parameters", "traceloop.entity.input")
_RESULTS = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
_MODELS = ("llm.model_name", "gen_ai.request.model", "gen_ai.response.model")
_PROMPT_TOKENS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETION_TOKENS = (
    "llm.token_count.completion",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
)
_COSTS = ("llm.cost.total", "gen_ai.usage.cost")
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_COLUMNS = {"context.trace_id", "context.span_id"}


class OpenTelemetry:
    """The format."""

    name = "otel"
    title = "OpenInference and OpenTelemetry GenAI spans"
    brings = Brings(reward="scores, said by the user", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        if column_types(opened).keys() >= _COLUMNS:
            return True
        records = [r for r in opened.records if isinstance(r, dict)]
        if any(isinstance(r.get("resourceSpans"), list) for r in records):
            return True
        spans = (s for r in records for s in spans_in(r) if s is not None)
        return any(_role_of(s) or s.attributes.first("gen_ai") is not None for s in spans)

    def read(self, opened: Opened) -> Iterator[Found]:
        traces = Bundles()
        for piece in pieces_of(opened):
            if isinstance(piece, Aside):
                yield piece
                continue
            parts = list(spans_in(piece.value))
            if None in parts:
                yield set_aside(piece.place, "no span: it has no ids or no attributes", as_said(piece.value))
            for span in parts:
                if span is not None:
                    traces.add(span.trace, piece.place, span, piece.size // len(parts))
        for _, place, found in traces:
            spans = [s if isinstance(s, Span) else restored(s) for s in found]
            yield _attempt(place, list({s.own: s for s in spans}.values()))


def _role_of(span: Span) -> str:
    """What a span is: "model", "tool", "agent", "judge", or "" for everything else."""
    first = span.attributes.first
    if kind := as_text(first("openinference.span.kind")):
        return _KINDS.get(kind.upper(), "")
    operation, kind = as_text(first("gen_ai.operation.name")).lower(), first("traceloop.span.kind")
    if operation == "execute_tool" or kind == "tool":
        return "tool"
    if operation in _MODEL_OPERATIONS or first("llm.request.type") in ("chat", "completion"):
        return "model"
    if operation in _AGENT_OPERATIONS or kind in ("agent", "workflow"):
        return "agent"
    if operation:
        return ""
    if first("gen_ai.tool.name"):
        return "tool"
    asked = first("gen_ai.prompt", "gen_ai.input.messages") is not None
    return "model" if first("gen_ai.request.model") and (asked or first("gen_ai.usage")) else ""


def _attempt(place: str, spans: list[Span]) -> Attempt | Remark:
    spans.sort(key=lambda s: s.begun or 0.0)
    parents = {s.own: s.parent for s in spans}
    of_role: dict[str, dict[str, Span]] = {"model": {}, "tool": {}, "agent": {}, "judge": {}, "": {}}
    for span in spans:
        of_role[_role_of(span)][span.own] = span
    models, tools, judges = of_role["model"], of_role["tool"], of_role["judge"]
    if not models and not tools:
        return Remark(text="A trace without a call of a model or a run of a tool was left out.")
    outer, beside = models | judges, tools | judges
    calls = _outside(outer, models.values(), parents)
    own_calls = _outside(tools, calls, parents)
    runs = _outside(beside, tools.values(), parents)
    told = told_of([_call_of(s) for s in own_calls], [_run_of(s) for s in runs])
    root = next((s for s in spans if s.parent not in parents), spans[0])
    agent = next(iter(of_role["agent"].values()), root)
    first = root.attributes.first
    metadata = as_dict(unpacked(first("metadata", "langfuse.trace.metadata")))
    trace = root.trace
    seconds, begun = between([s.begun for s in spans] + [s.ended for s in spans])
    facts: dict[str, JsonValue] = {
        "trace_id": trace,
        "session_id": as_text(first("session.id", "gen_ai.conversation.id")),
        "service": as_text(first("resource.service.name")) or root.service,
        "started_at": begun,
        "spans": len(spans),
        "tool_runs_apart": told.apart,
    }
    return new_attempt(
        place=place,
        namespace=as_text(metadata.get("dataset_id") or metadata.get("dataset_name")),
        task_id=_fact(metadata, "example_id", "dataset_example_id", "dataset_item_id", "task_id")[:200]
        or None,
        question=_question_of(first(*_QUESTIONS))
        or told.asked
        or f"Trace {trace} (its input was not recorded)",
        expected=_fact(metadata, "expected_output", "reference_output") or None,
        model=_model_of(calls),
        agent=as_text(agent.attributes.first("gen_ai.agent.name", "agent.name")) or agent.name,
        repeat=as_int(metadata.get("repetition_number")),
        own_id=trace,
        trajectory=new_trajectory(
            messages=told.conversation.messages,
            steps=told.conversation.steps,
            answer=told.conversation.answer or output_in(first("output.value")),
            finish_reason=_reason_of(own_calls),
        ),
        scores=_scores_of(spans),
        error=root.error[:500] or "the trace is marked as an error" if root.failed else None,
        usage=_usage_of(calls or [root], calls=len(calls)),
        duration_s=seconds,
        orphans=told.conversation.orphans,
        metadata={k: v for k, v in facts.items() if v},
    )


def _outside(inner: Mapping[str, Span], spans: Iterable[Span], parents: Mapping[str, str]) -> list[Span]:
    """The spans that lie within none of the inner ones."""
    if inner.keys().isdisjoint(parents.values()):  # which hold none at all
        return list(spans)
    return [s for s in spans if not within(s.own, parents, inner)]


def _fact(facts: dict[str, Any], *keys: str) -> str:
    for key in keys:
        if (fact := facts.get(key)) not in (None, ""):
            return as_said(fact)
    return ""


def _question_of(given: Any) -> str:
    asked = question_in(given)
    return asked if asked.strip() else ""


def _heard_by(span: Span) -> list[Any]:
    """The messages that went into a call of a model, in whichever form they are told."""
    if (given := span.attributes.first("llm.input_messages")) is not None:
        return [_of_openinference(m) for m in as_list(unpacked(given))]
    if (given := _detail(span, "gen_ai.input.messages")) is not None:
        system = _detail(span, "gen_ai.system_instructions")
        first = [{"role": "system", "parts": unpacked(system)}] if system else []
        return first + messages_in(given, "user")
    if events := [_of_event(n, a) for n, a in span.events if n in _EVENT_ROLES]:
        return events
    for given in (
        span.attributes.first("gen_ai.prompt"),
        _in_event(span, "gen_ai.content.prompt", "gen_ai.prompt"),
    ):
        if given is not None:
            return messages_in(given, "user")
    return messages_in(span.attributes.first("input.value", "traceloop.entity.input"), "user")


def _said_by(span: Span) -> list[Any]:
    """The messages that came out of a call of a model."""
    if (given := span.attributes.first("llm.output_messages")) is not None:
        return [_of_openinference(m) for m in as_list(unpacked(given))]
    if (given := _detail(span, "gen_ai.output.messages")) is not None:
        return messages_in(given, "assistant")
    if events := [_of_event(n, a) for n, a in span.events if n == "gen_ai.choice"]:
        return events
    content = _in_event(span, "gen_ai.content.completion", "gen_ai.completion")
    for given in (span.attributes.first("gen_ai.completion"), content):
        if given is not None:
            return messages_in(given, "assistant")
    return messages_in(span.attributes.first("output.value", "traceloop.entity.output"), "assistant")


def _detail(span: Span, key: str) -> Any:
    """An attribute of the span, or of the event that has the details of its operation."""
    own = span.attributes.first(key)
    return own if own is not None else _in_event(span, "gen_ai.client.inference.operation.details", key)


def _in_event(span: Span, name: str, key: str) -> Any:
    return next((v for n, a in span.events if n == name and (v := a.first(key)) is not None), None)


def _of_event(name: str, attributes: Attributes) -> dict[str, Any]:
    """A message as an event tells it: in its attributes, in its body, or as JSON in `gen_ai.event.content`."""
    held = unpacked(attributes.first("gen_ai.event.content"))
    body = as_dict(held) or as_dict(attributes.tree.get("body")) or attributes.tree
    inner = unpacked(body.get("message"))
    if isinstance(inner, dict):
        body = {**body, **inner}
    elif inner is not None:
        body = {**body, "content": inner}
    message = {k: unpacked(body[k]) for k in ("content", "tool_calls", "name") if body.get(k) is not None}
    if (call := body.get("id") or body.get("tool_call_id")) and name == "gen_ai.tool.message":
        message["tool_call_id"] = call
    return {"role": as_text(body.get("role")) or _EVENT_ROLES.get(name, "assistant"), **message}


def _of_openinference(message: Any) -> dict[str, Any]:
    """A message of OpenInference as a chat message."""
    inner = as_dict(as_dict(message).get("message")) or as_dict(message)
    content = inner.get("content")
    if content is None and inner.get("contents"):
        parts = [as_dict(as_dict(p).get("message_content")) or p for p in as_list(inner["contents"])]
        content = [{**p, "type": p.get("type") or "text"} for p in parts if isinstance(p, dict)]
    calls = [as_dict(as_dict(c).get("tool_call")) or c for c in as_list(inner.get("tool_calls"))]
    if name := inner.get("function_call_name"):
        calls = [{"name": name, "arguments": inner.get("function_call_arguments_json")}]
    return {
        "role": as_text(inner.get("role")) or "user",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **{k: inner[k] for k in ("tool_call_id", "name") if inner.get(k)},
    }


def _call_of(span: Span) -> ModelCall:
    return ModelCall(
        at=span.begun or 0.0,
        size=_size_of(span),
        heard=lambda: _heard_by(span),
        said=lambda: _said_by(span),
    )


def _size_of(span: Span) -> int:
    return size_of(span.attributes.first(*_INPUTS)) or len(span.events)


def _run_of(span: Span) -> ToolRun:
    first, begun, ended = span.attributes.first, span.begun, span.ended
    given, result, fault = first(*_ARGUMENTS), first(*_RESULTS), as_text(first("error.type"))
    if given is None:
        given = _in_event(span, "gen_ai.tool.message", "content")
    if result is None:
        result = _in_event(span, "gen_ai.choice", "message")
    return ToolRun(
        at=begun or 0.0,
        tool=as_text(first("gen_ai.tool.name", "tool.name", "traceloop.entity.name")) or span.name,
        given=given,
        returned=result,
        failed=True if fault else span.failed,
        error=span.error or fault,
        duration_s=round(ended - begun, 3) if begun and ended and ended >= begun else None,
    )


def _model_of(calls: list[Span]) -> str:
    return most_frequent(as_text(s.attributes.first(*_MODELS)) for s in calls)


def _reason_of(calls: list[Span]) -> str | None:
    reasons = unpacked(calls[-1].attributes.first("gen_ai.response.finish_reasons")) if calls else None
    return as_text(as_list(reasons)[0])[:100] or None if as_list(reasons) else None


def _usage_of(spans: list[Span], *, calls: int) -> Usage:
    """Tokens of spans that repeat each other in nothing."""
    prompt = completion = 0
    cost = 0.0
    for span in spans:
        first = span.attributes.first
        prompt += max(0, as_int(first(*_PROMPT_TOKENS)) or 0)
        completion += max(0, as_int(first(*_COMPLETION_TOKENS)) or 0)
        cost += as_number(first(*_COSTS)) or 0.0
    return new_usage(calls=calls, prompt_tokens=prompt, completion_tokens=completion, cost_usd=max(0.0, cost))


def _scores_of(spans: list[Span]) -> dict[str, Seen]:
    """What evaluations said; further scores of the same name are numbered."""
    found: dict[str, Seen] = {}
    events = [a for s in spans if s.events for n, a in s.events if n == "gen_ai.evaluation.result"]
    for told in events + [s.attributes for s in spans]:
        value = told.first("gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label")
        if value is not None:
            name = as_text(told.first("gen_ai.evaluation.name")) or "evaluation"
            times = sum(n == name or n.startswith(f"{name} (") for n in found)
            found[f"{name} ({times + 1})" if times else name] = as_seen(value)
    return found
