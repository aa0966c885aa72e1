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

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Seen
from core.importers.bundles import Bundles
from core.importers.getting import as_dict, as_int, as_json, as_list, as_said, as_seen, as_text, at
from core.importers.lines import records_of, set_aside
from core.importers.opened import Opened
from core.importers.parquet import column_types
from core.importers.parquet import rows_of as parquet_rows
from core.importers.times import moment, span_of
from core.importers.traces import (
    ModelCall,
    ToolRun,
    messages_in,
    output_in,
    parameters_in,
    question_in,
    returned_in,
    size_of,
    told_of,
    unpacked,
    within,
)
from core.rollout import Trajectory, Usage

_COLUMNS = {"run_type", "trace_id"}
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
        for number, place, size, record in _records(opened):
            if isinstance(record, Aside):
                yield record
                continue
            runs = list(_runs_in(record))
            if not runs:
                yield set_aside(place, "no run: it has no type or no trace", as_said(record))
            for run in runs:
                traces.add(as_text(run["trace_id"]), number, [place, run], size // len(runs))
        for own, found in traces:
            yield _attempt(own, found[0][1][0], [run for _, (_, run) in found])


def _records(opened: Opened) -> Iterator[tuple[int, str, int, Any]]:
    """(number, place, size, record or aside) of everything that the file holds."""
    if column_types(opened):
        for row in parquet_rows(opened):
            if isinstance(row, Aside):
                yield 0, row.place, 0, row
            else:
                number, values = row
                yield number, f"row {number}", len(repr(values)), as_json(values)
        return
    for piece in records_of(opened):
        if isinstance(piece, Aside):
            yield 0, piece.place, 0, piece
        else:
            yield piece.number, piece.place, piece.size, piece.value


def _runs_in(record: dict[str, Any], depth: int = _NESTED) -> Iterator[dict[str, Any]]:
    """The runs of a record: itself, those that lie in it, or those of a batch."""
    for key in ("post", "patch", "runs"):
        for part in as_list(record.get(key)) if "run_type" not in record else ():
            yield from _runs_in(as_dict(part), depth - 1) if depth > 0 else ()
    is_patch = "run_type" not in record and "dotted_order" in record
    if as_text(record.get("trace_id")) and as_text(record.get("id")) and ("run_type" in record or is_patch):
        yield {k: v for k, v in record.items() if k != "child_runs"}
        for part in as_list(record.get("child_runs")) if depth > 0 else ():
            yield from _runs_in({"trace_id": record["trace_id"], **as_dict(part)}, depth - 1)


def _attempt(own: str, place: str, parts: list[dict[str, Any]]) -> Attempt:
    runs: dict[str, dict[str, Any]] = {}
    for part in parts:
        own_id, kept = as_text(part["id"]), {k: v for k, v in part.items() if v is not None}
        runs[own_id] = {**runs[own_id], **kept} if own_id in runs else kept  # a patch, or the run once more
    runs = dict(sorted(runs.items(), key=lambda item: moment(item[1].get("start_time")) or 0.0))
    parents = {k: _parent_of(r) for k, r in runs.items()}
    models = {k: r for k, r in runs.items() if as_text(r.get("run_type")) == "llm"}
    tools = {k: r for k, r in runs.items() if as_text(r.get("run_type")) == "tool"}
    calls = [r for k, r in models.items() if not within(k, parents, models)]
    inner = models | tools
    own_calls = [r for k, r in models.items() if not within(k, parents, inner)]
    told = told_of(
        [_call_of(r) for r in own_calls],
        [_run_of(r) for k, r in tools.items() if not within(k, parents, tools)],
    )
    root = runs.get(own) or next((r for k, r in runs.items() if parents[k] not in runs), {})
    example, session = as_text(root.get("reference_example_id")), as_text(root.get("session_id"))
    name = as_text(root.get("name"))
    asked = question_in(root.get("inputs"))
    asked = asked if asked.strip() else told.asked
    seconds, begun = span_of(r.get(k) for r in runs.values() for k in ("start_time", "end_time"))
    facts: dict[str, JsonValue] = {
        "trace_id": own,
        "session_id": session,
        "tags": ", ".join(as_text(t) for t in as_list(root.get("tags"))),
        "started_at": begun,
        "runs": len(runs),
        "tool_runs_apart": told.apart,
    }
    return Attempt(
        place=place,
        namespace=as_text(root.get("reference_dataset_id")),
        task_id=example[:200] or None,
        question=asked or f"Trace {own} (its input was not recorded)",
        model=_model_of(calls),
        agent=f"{name} {session}".strip() if example else name,
        run=session if example else "",
        own_id=own,
        trajectory=Trajectory(
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


def _call_of(run: dict[str, Any]) -> ModelCall:
    given = unpacked(run.get("inputs"))
    return ModelCall(
        at=moment(run.get("start_time")) or 0.0,
        size=size_of(given),
        heard=lambda: messages_in(given, "user"),
        said=lambda: messages_in(run.get("outputs"), "assistant"),
    )


def _run_of(run: dict[str, Any]) -> ToolRun:
    result = unpacked(run.get("outputs"))
    inner = unpacked(result.get("output")) if isinstance(result, dict) and "output" in result else result
    inner = at(inner, "kwargs") or inner
    begun, ended = moment(run.get("start_time")), moment(run.get("end_time"))
    error = as_text(run.get("error"))
    return ToolRun(
        at=begun or 0.0,
        tool=as_text(run.get("name")),
        parameters=parameters_in(run.get("inputs")),
        output=returned_in(at(inner, "content") if at(inner, "content") is not None else inner),
        failed=True if error or at(inner, "status") == "error" else None,
        error=error,
        duration_s=round(ended - begun, 3) if begun and ended and ended >= begun else None,
    )


def _model_of(calls: list[dict[str, Any]]) -> str:
    models: Counter[str] = Counter()
    for call in calls:
        extra = unpacked(call.get("extra"))
        given = (at(extra, "metadata", "ls_model_name"), at(extra, "invocation_params", "model"))
        if model := next((m for g in given if (m := as_text(g))), ""):
            models[model] += 1
    return models.most_common(1)[0][0] if models else ""


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
        given = (call.get("prompt_tokens"), used.get("input_tokens"))
        taken = (call.get("completion_tokens"), used.get("output_tokens"))
        prompt += max(0, next((n for g in given if (n := as_int(g))), 0))
        completion += max(0, next((n for g in taken if (n := as_int(g))), 0))
        cost += as_seen(call.get("total_cost")).value or 0.0  # decimals come as text
    return Usage(
        calls=len(calls), prompt_tokens=prompt, completion_tokens=completion, cost_usd=max(0.0, cost)
    )
