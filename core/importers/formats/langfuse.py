"""Traces of Langfuse: a downloaded trace (`trace` and `observations`), traces and observations as the interface lists
them (`{"data": [...]}`), and exports with one of them a line.

1. A trace is one attempt. Inputs and outputs are JSON in strings, perhaps twice over; observations are in no order.
2. The calls of the model are the outermost GENERATIONs, the runs of tools the outermost TOOLs: what lies within a tool
   is a sub-agent's. `level` ERROR is a failure, everything else tells nothing.
3. Scores are the trace's own; Langfuse knows no reward: the user says which score it is. A category's number counts
   only where it is not 0, which also stands for "none".
4. Tasks are the items of a data set, where the trace names one, else traces with the same input.
5. A root observation with `level` ERROR is an infrastructure error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Brings,
    Found,
    Remark,
    Seen,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.bundles import Bundles
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_seen, as_text, at
from core.importers.lines import records_of, set_aside
from core.importers.opened import Opened
from core.importers.times import between, moment
from core.importers.traces import (
    ModelCall,
    Part,
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

_KINDS = {
    "SPAN",
    "EVENT",
    "GENERATION",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
}
_ITEM_KEYS = ("dataset_item_id", "datasetItemId", "experiment_item_id", "langfuse.experiment.item.id")
_RUN_KEYS = ("dataset_run_name", "datasetRunName", "experiment_name", "langfuse.experiment.name")
_SET_KEYS = (
    "dataset_name",
    "datasetName",
    "dataset_id",
    "experiment_dataset_id",
    "langfuse.experiment.dataset.id",
)
_EXPECTED_KEYS = ("expected_output", "expectedOutput", "langfuse.experiment.item.expected_output")


class Langfuse:
    """The format."""

    name = "langfuse"
    title = "Langfuse traces"
    brings = Brings(reward="scores, said by the user", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(_kind_of(r) for r in opened.records if isinstance(r, dict))

    def read(self, opened: Opened) -> Iterator[Found]:
        traces = Bundles()
        for piece in records_of(opened):
            if isinstance(piece, Aside):
                yield piece
                continue
            parts = list(_parts_of(piece.value))
            if not parts:
                yield set_aside(piece.place, "neither a trace nor an observation", as_said(piece.value))
            for own, part in parts:
                size = piece.size // len(parts)
                traces.add(own or f"#{piece.number}", piece.place, part, size)
        for _, place, found in traces:
            yield from _attempt(place, found)


def _kind_of(record: dict[str, Any]) -> str:
    """What a record is: "download", "list", "trace", "observation", or "" for what is none of Langfuse's."""
    if isinstance(record.get("trace"), dict) and isinstance(record.get("observations"), list):
        return "download"
    if isinstance(record.get("data"), list) and "meta" in record:
        return "list" if any(_kind_of(as_dict(r)) for r in record["data"][:20]) else ""
    if as_text(record.get("type")) in _KINDS and ("traceId" in record or "trace_id" in record):
        return "observation" if "startTime" in record or "start_time" in record else ""
    if isinstance(record.get("id"), str) and "timestamp" in record and "input" in record:
        marks = {"observations", "sessionId", "session_id", "htmlPath", "bookmarked", "projectId"}
        return "trace" if len(marks & record.keys()) >= 2 else ""
    return ""


def _parts_of(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(trace id, {"trace": ...} or {"observation": ...}) of all that a record holds."""
    kind = _kind_of(record)
    if kind == "download":
        own = as_text(record["trace"].get("id"))
        yield own, {"trace": {k: v for k, v in record["trace"].items() if k != "observations"}}
        yield from ((own, {"observation": o}) for o in record["observations"] if isinstance(o, dict))
    elif kind == "list":
        for part in record["data"]:
            yield from _parts_of(as_dict(part))
    elif kind == "observation":
        yield as_text(_get(record, "traceId")), {"observation": record}
    elif kind == "trace":
        own = as_text(record["id"])
        yield own, {"trace": {k: v for k, v in record.items() if k != "observations"}}
        yield from (
            (own, {"observation": o}) for o in as_list(record.get("observations")) if isinstance(o, dict)
        )


def _get(record: dict[str, Any], name: str) -> Any:
    """A field by its name in the interface (`statusMessage`), or as Python's client writes it (`status_message`)."""
    return record[name] if name in record else record.get(_snake(name))


@lru_cache(maxsize=100)
def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _attempt(place: str, parts: list[dict[str, Any]]) -> Iterator[Found]:
    trace: dict[str, Any] = {}
    known: dict[str, dict[str, Any]] = {}
    for part in parts:
        trace = part.get("trace") or trace
        if found := part.get("observation"):
            known[as_text(found.get("id")) or f"#{len(known)}"] = found
    seen = sorted((_part(k, o) for k, o in known.items()), key=lambda p: p.at)
    parents = {p.own: p.parent for p in seen}
    generations = {p.own: p for p in seen if p.kind == "GENERATION"}
    tools = {p.own: p for p in seen if p.kind == "TOOL"}
    calls = [p.told for k, p in generations.items() if not within(k, parents, generations)]
    inner = generations | tools
    own_calls = [p for k, p in generations.items() if not within(k, parents, inner)]
    runs = [p for k, p in tools.items() if not within(k, parents, tools)]
    told = told_of([_call_of(p) for p in own_calls], [_run_of(p) for p in runs])
    root = next((p.told for p in seen if not p.parent), {})
    own = as_text(trace.get("id")) or as_text(_get(root, "traceId"))
    name = as_text(trace.get("name")) or as_text(root.get("name"))
    given = unpacked(trace.get("input"))
    asked = question_in(given)
    asked = asked if asked.strip() else told.asked
    if (calls or runs) and not any(p.told.get("input") or p.told.get("output") for p in seen):
        yield Remark(
            text="A trace was exported without inputs and outputs: nothing of its conversation is known."
        )
    if told.apart:
        yield Remark(text="Runs of tools that the main conversation did not ask for are no steps of it.")
    facts = as_dict(unpacked(trace.get("metadata")))
    facts = {**as_dict(facts.get("attributes")), **facts}
    yield new_attempt(
        place=place,
        namespace=_fact(facts, _SET_KEYS),
        task_id=_fact(facts, _ITEM_KEYS)[:200] or None,
        question=asked or f"{name or 'Trace'} {own} (its input was not recorded)",
        system=as_text(as_dict(given).get("system")),
        expected=_fact(facts, _EXPECTED_KEYS) or None,
        model=most_frequent(as_text(o.get("model")) for o in calls),
        agent=name,
        run=_fact(facts, _RUN_KEYS),
        own_id=own or None,
        trajectory=new_trajectory(
            messages=told.conversation.messages,
            steps=told.conversation.steps,
            answer=told.conversation.answer or output_in(trace.get("output")),
        ),
        scores=_scores_of(_get(trace, "scores")),
        error=_error_of(root),
        usage=_usage_of(calls),
        duration_s=_duration_of(trace, seen),
        orphans=told.conversation.orphans,
        metadata=_metadata_of(trace, seen, told.apart),
    )


def _part(own: str, observation: dict[str, Any]) -> Part:
    parent, kind = as_text(_get(observation, "parentObservationId")), as_text(observation.get("type"))
    begun, ended = moment(_get(observation, "startTime")), moment(_get(observation, "endTime"))
    return Part(own, parent, kind, begun, ended, observation)


def _call_of(part: Part) -> ModelCall:
    told = part.told
    return ModelCall(
        at=part.at,
        size=size_of(told.get("input")),
        heard=lambda: messages_in(told.get("input"), "user"),
        said=lambda: messages_in(told.get("output"), "assistant"),
    )


def _run_of(part: Part) -> ToolRun:
    told = part.told
    return ToolRun(
        at=part.at,
        tool=as_text(told.get("name")),
        given=told.get("input"),
        returned=told.get("output"),
        failed=True if told.get("level") == "ERROR" else None,
        error=as_text(_get(told, "statusMessage")),
        duration_s=part.duration_s,
    )


def _fact(facts: dict[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        if (fact := facts.get(key)) not in (None, ""):
            return as_said(fact)
    return ""


def _scores_of(scores: Any) -> dict[str, Seen]:
    """The scores of the trace itself by name; further ones of the same name are numbered."""
    if isinstance(scores, dict):  # of an export: {"correctness": [1]}
        scores = [
            {"name": k, "value": v}
            for k, vs in scores.items()
            for v in (vs if isinstance(vs, list) else [vs])
        ]
    found: dict[str, Seen] = {}
    for score in map(as_dict, as_list(scores)):
        name = as_text(score.get("name"))
        if not name or _get(score, "observationId"):
            continue
        times = sum(n == name or n.startswith(f"{name} (") for n in found)
        found[f"{name} ({times + 1})" if times else name] = _seen(score)
    return found


def _seen(score: dict[str, Any]) -> Seen:
    kind, words = as_text(_get(score, "dataType")), _get(score, "stringValue")
    number = as_number(score.get("value"))
    if kind in ("CATEGORICAL", "TEXT") or (number is None and words is not None):
        if number:
            return Seen(value=number, raw=as_text(words)[:200], guessed=True)
        return as_seen(words if words is not None else score.get("value"))
    return as_seen(score.get("value"))


def _error_of(root: dict[str, Any]) -> str | None:
    if root.get("level") != "ERROR" or as_text(root.get("type")) == "TOOL":
        return None
    return as_text(_get(root, "statusMessage"))[:500] or "the trace is marked as an error"


def _usage_of(calls: list[dict[str, Any]]) -> Usage:
    prompt = completion = 0
    cost = 0.0
    for call in calls:
        used = as_dict(_get(call, "usageDetails")) or as_dict(call.get("usage"))
        out = _tokens(used, "output", "completionTokens", "completion_tokens")
        total = _tokens(used, "total", "totalTokens", "total_tokens")
        completion += out
        prompt += total - out if total > out else _tokens(used, "input", "promptTokens", "prompt_tokens")
        given = as_number(at(call, "costDetails", "total"))
        cost += given if given is not None else as_number(_get(call, "totalCost")) or 0.0
    return new_usage(
        calls=len(calls), prompt_tokens=prompt, completion_tokens=completion, cost_usd=max(0.0, cost)
    )


def _tokens(used: dict[str, Any], *names: str) -> int:
    for name in names:
        if (count := as_int(used.get(name))) is not None:
            return max(0, count)
    return 0


def _duration_of(trace: dict[str, Any], seen: list[Part]) -> float | None:
    latency = as_number(trace.get("latency"))
    if latency is not None and latency >= 0:
        return latency
    return between(m for p in seen for m in (p.begun, p.ended))[0]


def _metadata_of(trace: dict[str, Any], seen: list[Part], apart: int) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {
        "trace_id": as_text(trace.get("id")),
        "session_id": as_text(_get(trace, "sessionId")),
        "environment": as_text(trace.get("environment")),
        "release": as_text(trace.get("release")),
        "version": as_text(trace.get("version")),
        "tags": ", ".join(as_text(t) for t in as_list(trace.get("tags"))),
        "started_at": between([moment(trace.get("timestamp")), *(p.begun for p in seen)])[1],
        "observations": len(seen),
        "tool_runs_apart": apart,
    }
    return {k: v for k, v in facts.items() if v}
