"""Runs of LangSmith: what `list_runs` gives, JSONL or a bulk export in Parquet, and batches as they are sent
(`{"post": [...], "patch": [...]}`).

1. A trace is one attempt; its runs may stand anywhere in the file, and a patch completes the run of its id.
2. The calls of the model are the outermost runs of type "llm", the runs of tools those of type "tool". `error` is a
   failure; that a run ended without one tells nothing of its success.
3. Tasks are the examples of a data set (`reference_example_id`), else traces with the same input. An experiment
   (`session_id`) is a configuration of its own.
4. Scores are the means of the feedback on the root; the user says which is the reward.
5. `error` of the root is an infrastructure error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Attempt,
    Brings,
    Found,
    Seen,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.bundles import Bundles
from core.importers.getting import as_dict, as_int, as_list, as_said, as_seen, as_text, at
from core.importers.lines import set_aside
from core.importers.opened import Opened
from core.importers.parquet import column_types
from core.importers.rows import pieces_of
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

_COLUMNS = {"run_type", "trace_id"}
_BATCHES = ("post", "patch", "runs")
_NESTED = 50
"""How deep runs may lie in the `child_runs` of others."""


class LangSmith:
    """The format."""

    name = "langsmith"
    title = "LangSmith runs"
    brings = Brings(reward="scores, said by the user", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        if column_types(opened).keys() >= _COLUMNS:
            return True
        return any(True for r in opened.records if isinstance(r, dict) for _ in _runs_in(r))

    def read(self, opened: Opened) -> Iterator[Found]:
        traces = Bundles()
        for piece in pieces_of(opened):
            if isinstance(piece, Aside):
                yield piece
                continue
            runs = list(_runs_in(piece.value))
            if not runs:
                yield set_aside(piece.place, "no run: it has no type or no trace", as_said(piece.value))
            for run in runs:
                traces.add(as_text(run["trace_id"]), piece.place, run, piece.size // len(runs))
        for own, place, found in traces:
            yield _attempt(own, place, found)


def _runs_in(record: dict[str, Any], depth: int = _NESTED) -> Iterator[dict[str, Any]]:
    """The runs of a record: itself, those that lie in it, or those of a batch."""
    if "run_type" not in record:
        for part in (p for key in _BATCHES for p in as_list(record.get(key))):
            yield from _runs_in(as_dict(part), depth - 1) if depth > 0 else ()
        if "dotted_order" not in record:
            return
    if not as_text(record.get("trace_id")) or not as_text(record.get("id")):
        return
    inner = record.get("child_runs")
    yield {k: v for k, v in record.items() if k != "child_runs"} if inner is not None else record
    for part in as_list(inner) if depth > 0 else ():
        yield from _runs_in({"trace_id": record["trace_id"], **as_dict(part)}, depth - 1)


def _attempt(own: str, place: str, parts: list[dict[str, Any]]) -> Attempt:
    known: dict[str, dict[str, Any]] = {}
    for part in parts:
        own_id = as_text(part["id"])
        patch = {k: v for k, v in part.items() if v is not None} if own_id in known else {}
        known[own_id] = {**known[own_id], **patch} if patch else part
    runs = sorted((_part(k, r) for k, r in known.items()), key=lambda p: p.at)
    parents = {p.own: p.parent for p in runs}
    models = {p.own: p for p in runs if p.kind == "llm"}
    tools = {p.own: p for p in runs if p.kind == "tool"}
    calls = [p.told for k, p in models.items() if not within(k, parents, models)]
    inner = models | tools
    own_calls = [p for k, p in models.items() if not within(k, parents, inner)]
    told = told_of(
        [_call_of(p) for p in own_calls],
        [_run_of(p) for k, p in tools.items() if not within(k, parents, tools)],
    )
    root = known.get(own) or next((p.told for p in runs if p.parent not in parents), {})
    example, session = as_text(root.get("reference_example_id")), as_text(root.get("session_id"))
    name = as_text(root.get("name"))
    asked = question_in(root.get("inputs"))
    asked = asked if asked.strip() else told.asked
    seconds, begun = between(m for p in runs for m in (p.begun, p.ended))
    facts: dict[str, JsonValue] = {
        "trace_id": own,
        "session_id": session,
        "tags": ", ".join(as_text(t) for t in as_list(root.get("tags"))),
        "started_at": begun,
        "runs": len(runs),
        "tool_runs_apart": told.apart,
    }
    return new_attempt(
        place=place,
        namespace=as_text(root.get("reference_dataset_id")),
        task_id=example[:200] or None,
        question=asked or f"Trace {own} (its input was not recorded)",
        model=most_frequent(map(_model_of, calls)),
        agent=f"{name} {session}".strip() if example else name,
        run=session if example else "",
        own_id=own,
        trajectory=new_trajectory(
            messages=told.conversation.messages,
            steps=told.conversation.steps,
            answer=told.conversation.answer or output_in(root.get("outputs")),
        ),
        scores=_scores_of(root),
        error=as_text(root.get("error"))[:500] or None,
        usage=_usage_of(calls),
        duration_s=seconds,
        orphans=told.conversation.orphans,
        metadata={k: v for k, v in facts.items() if v},
    )


def _parent_of(run: dict[str, Any]) -> str:
    """The run that a run lies in: by name, else the last but one of its dotted order (`<time>Z<id>.<time>Z<id>`)."""
    if parent := as_text(run.get("parent_run_id")):
        return parent
    path = as_text(run.get("dotted_order")).split(".")
    return path[-2].rpartition("Z")[2] if len(path) > 1 else ""


def _part(own: str, run: dict[str, Any]) -> Part:
    begun, ended = moment(run.get("start_time")), moment(run.get("end_time"))
    return Part(own, _parent_of(run), as_text(run.get("run_type")), begun, ended, run)


def _call_of(part: Part) -> ModelCall:
    given = unpacked(part.told.get("inputs"))
    return ModelCall(
        at=part.at,
        size=size_of(given),
        heard=lambda: messages_in(given, "user"),
        said=lambda: messages_in(part.told.get("outputs"), "assistant"),
    )


def _run_of(part: Part) -> ToolRun:
    result = unpacked(part.told.get("outputs"))
    inner = unpacked(result.get("output")) if isinstance(result, dict) and "output" in result else result
    inner = at(inner, "kwargs") or inner
    content, error = at(inner, "content"), as_text(part.told.get("error"))
    return ToolRun(
        at=part.at,
        tool=as_text(part.told.get("name")),
        given=part.told.get("inputs"),
        returned=content if content is not None else inner,
        failed=True if error or at(inner, "status") == "error" else None,
        error=error,
        duration_s=part.duration_s,
    )


def _model_of(call: dict[str, Any]) -> str:
    extra = unpacked(call.get("extra"))
    return as_text(at(extra, "metadata", "ls_model_name")) or as_text(at(extra, "invocation_params", "model"))


def _scores_of(root: dict[str, Any]) -> dict[str, Seen]:
    """The feedback by its key: the mean of what was given, or the only word."""
    found = {}
    for key, told in as_dict(unpacked(root.get("feedback_stats"))).items():
        words = as_dict(at(told, "values"))
        value = at(told, "avg") if isinstance(told, dict) else told
        found[as_text(key)] = as_seen(next(iter(words)) if value is None and len(words) == 1 else value)
    return found


def _usage_of(calls: list[dict[str, Any]]) -> Usage:
    prompt = completion = 0
    cost = 0.0
    for call in calls:
        used = as_dict(at(unpacked(call.get("outputs")), "usage_metadata"))
        prompt += _tokens(call.get("prompt_tokens"), used.get("input_tokens"))
        completion += _tokens(call.get("completion_tokens"), used.get("output_tokens"))
        cost += as_seen(call.get("total_cost")).value or 0.0  # decimals come as text
    return new_usage(
        calls=len(calls), prompt_tokens=prompt, completion_tokens=completion, cost_usd=max(0.0, cost)
    )


def _tokens(own: Any, used: Any) -> int:
    return max(0, as_int(own) or as_int(used) or 0)
