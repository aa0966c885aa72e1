"""Traces of OpenTelemetry are read in each of their conventions and shapes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.importers.attempt import Attempt
from core.importers.bundles import Bundles
from core.importers.formats import otel
from core.importers.formats.otel import OpenTelemetry
from core.importers.spans import tree_of
from tests.importers.make_otel import CONVENTIONS, PROMPTS, make, otlp, span, trace
from tests.importers.making import Counts, asides_of, attempts_of, counted, opened, read, remarks_of

FORM = OpenTelemetry()


def written(tmp_path: Path, value: Any, indent: int | None = None) -> Path:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def only(tmp_path: Path, value: Any) -> Attempt:
    path = written(tmp_path, value)
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    return attempt


def test_a_file_of_traces_is_counted_as_a_person_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    counts = make(path)
    assert counts == Counts(
        attempts=12,
        tasks=3,
        scored=9,
        unscored=3,
        steps=24,
        failed=6,
        prompt_tokens=3600,
        completion_tokens=480,
    )
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == counts
    assert remarks_of(FORM, path) == []


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_convention_tells_the_same_attempt(tmp_path: Path, convention: str) -> None:
    attempt = only(tmp_path, otlp(trace(1, convention)))
    roles = [m.role for m in attempt.trajectory.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert attempt.trajectory.messages[0].content == "Be kind."
    assert attempt.question == PROMPTS[0]
    assert attempt.trajectory.answer == "Done 1."
    oslo, rome = attempt.trajectory.steps
    assert (oslo.tool, oslo.parameters, oslo.output, oslo.success) == (
        "weather",
        {"city": "Oslo"},
        "rain",
        None,
    )
    assert (rome.parameters, rome.output, rome.success) == ({"city": "Rome"}, "no such city", False)
    assert (rome.told_by, rome.error, rome.duration_s, rome.turn) == ("flag", "404", 0.5, 0)
    assert (attempt.model, attempt.agent) == ("gpt-test", "guide")
    assert (attempt.usage.calls, attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (2, 300, 40)
    assert {k: v.value for k, v in attempt.scores.items()} == {"quality": 1.0}
    assert (attempt.duration_s, attempt.metadata["service"]) == (3.5, "travel")


def as_phoenix(s: dict[str, Any]) -> dict[str, Any]:
    """As Phoenix's interface gives a span away: objects within objects."""
    codes = {0: "UNSET", 1: "OK", 2: "ERROR"}
    return {
        "name": s["name"],
        "context": {"trace_id": s["traceId"], "span_id": s["spanId"]},
        "span_kind": s["attributes"].get("openinference.span.kind", "UNKNOWN"),
        "parent_id": s["parentSpanId"] or None,
        "start_time": datetime.fromtimestamp(int(s["startTimeUnixNano"]) / 1e9, UTC).isoformat(),
        "end_time": datetime.fromtimestamp(int(s["endTimeUnixNano"]) / 1e9, UTC).isoformat(),
        "status_code": codes[s["status"].get("code", 0)],
        "status_message": s["status"].get("message", ""),
        "attributes": tree_of(s["attributes"]),
        "events": s["events"],
    }


def as_sdk(s: dict[str, Any]) -> dict[str, Any]:
    """As OpenTelemetry's own `Span.to_json` writes it."""
    told = as_phoenix(s)
    del told["span_kind"], told["status_code"], told["status_message"]
    return told | {
        "context": {"trace_id": f"0x{s['traceId']}", "span_id": f"0x{s['spanId']}", "trace_state": "[]"},
        "parent_id": f"0x{s['parentSpanId']}" if s["parentSpanId"] else None,
        "kind": "SpanKind.INTERNAL",
        "status": {"status_code": "ERROR" if s["status"] else "UNSET", "description": "404"},
        "attributes": s["attributes"],
    }


@pytest.mark.parametrize("shape", [as_phoenix, as_sdk])
def test_spans_of_their_own_are_the_same_trace(tmp_path: Path, shape: Any) -> None:
    expected = only(tmp_path, otlp(trace(1, "openinference")))
    spans = [shape(s) for s in trace(1, "openinference")]
    for value in (spans, {"data": spans, "next_cursor": None}):
        found = only(tmp_path, value)
        assert found.trajectory == expected.trajectory
        assert (found.own_id, found.usage, found.scores) == (expected.own_id, expected.usage, expected.scores)
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(s) + "\n" for s in spans))
    assert [a.trajectory for a in attempts_of(FORM, path)] == [expected.trajectory]


@pytest.mark.parametrize("limit", [10**6, 0])
def test_a_data_frame_of_phoenix_is_the_same_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(otel, "Bundles", lambda: Bundles(limit))
    rows = []
    for s in trace(1, "openinference"):
        told = as_phoenix(s)
        row = {k: v for k, v in told.items() if k not in ("context", "attributes")}
        row |= {"context.trace_id": s["traceId"], "context.span_id": s["spanId"], "events": []}
        row["start_time"] = datetime.fromisoformat(told["start_time"])
        row["end_time"] = datetime.fromisoformat(told["end_time"])
        row["attributes.seen_at"] = row["end_time"]
        for key, value in tree_of(s["attributes"]).get("llm", {}).items():
            if key.endswith("_messages"):
                row[f"attributes.llm.{key}"] = [flat_message(m["message"]) for m in value]
            elif key == "token_count":
                row |= {f"attributes.llm.token_count.{k}": float(v) for k, v in value.items()}
            else:
                row[f"attributes.llm.{key}"] = value
        row |= {f"attributes.{k}": v for k, v in s["attributes"].items() if not k.startswith("llm.")}
        rows.append(row)
    path = tmp_path / "spans.parquet"
    columns = sorted({k for r in rows for k in r})
    pq.write_table(pa.Table.from_pylist([{k: r.get(k) for k in columns} for r in rows]), path)
    assert FORM.recognises(opened(path))
    (found,) = attempts_of(FORM, path)
    expected = only(tmp_path, otlp(trace(1, "openinference")))
    assert found.trajectory == expected.trajectory
    assert (found.usage, found.duration_s, found.place) == (expected.usage, 3.5, "row 1")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_spans_that_were_kept_in_a_file_tell_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convention: str
) -> None:
    expected = only(tmp_path, otlp(trace(1, convention)))
    monkeypatch.setattr(otel, "Bundles", lambda: Bundles(limit=0))
    assert only(tmp_path, otlp(trace(1, convention))) == expected


@pytest.mark.parametrize("odd", ["x", 3, {"span": "x"}, {"span": {"kind": None}}])
def test_a_kind_beside_attributes_is_believed_where_these_tell_none(tmp_path: Path, odd: Any) -> None:
    spans = [as_phoenix(s) for s in trace(1, "openinference")]
    expected = only(tmp_path, spans)
    for s in spans:
        s["attributes"]["openinference"] = odd
    assert only(tmp_path, spans) == expected


def flat_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message as a data frame holds it: dots in the keys."""
    told = {f"message.{k}": v for k, v in message.items() if k != "tool_calls"}
    calls = [
        {
            "tool_call.id": c["tool_call"]["id"],
            "tool_call.function.name": c["tool_call"]["function"]["name"],
            "tool_call.function.arguments": c["tool_call"]["function"]["arguments"],
        }
        for c in message.get("tool_calls", ())
    ]
    return {**told, "message.tool_calls": calls} if calls else told


def test_places_of_messages_are_numbers_and_no_words(tmp_path: Path) -> None:
    attributes = {"openinference.span.kind": "LLM"}
    for place in range(12):
        attributes[f"llm.input_messages.{place}.message.role"] = "user"
        attributes[f"llm.input_messages.{place}.message.content"] = str(place)
    attempt = only(tmp_path, otlp([span("s", "1" * 32, 0, dict(sorted(attributes.items())))]))
    assert [m.content for m in attempt.trajectory.messages] == [str(n) for n in range(12)]


def test_an_explicit_ok_is_success_and_an_unset_status_is_not(tmp_path: Path) -> None:
    runs = [
        span(f"s{code}", "1" * 32, code, {"gen_ai.tool.name": "x"}, status={"code": code})
        for code in (0, 1, 2)
    ]
    runs.append(span("s3", "1" * 32, 3, {"gen_ai.tool.name": "x", "error.type": "timeout"}))
    attempt = only(tmp_path, otlp(runs))
    assert [s.success for s in attempt.trajectory.steps] == [None, True, False, False]
    assert attempt.trajectory.steps[3].error == "timeout"


def test_an_empty_output_of_a_run_is_a_result_and_none_at_all_is_not(tmp_path: Path) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "store"}
    spans = [
        span("empty", "t", 1.0, tool | {"gen_ai.tool.call.result": ""}),
        span("untold", "t", 2.0, tool),
        span("ok", "t", 3.0, tool, status={"code": 1}),
    ]
    steps = only(tmp_path, otlp(spans)).trajectory.steps
    assert [(s.output, s.success, s.told_by) for s in steps] == [
        ("", True, "text"),
        ("", None, ""),
        ("", True, "flag"),
    ]


def test_a_run_without_its_output_leaves_that_of_the_conversation(tmp_path: Path) -> None:
    spans = trace(0)
    runs = [s for s in spans if s["attributes"].get("gen_ai.operation.name") == "execute_tool"]
    for run in runs:
        run["attributes"].pop("gen_ai.tool.call.result")
        run["status"] = {"code": 1}
    steps = only(tmp_path, otlp(spans)).trajectory.steps
    assert len(runs) == len(steps) == 2
    assert [(s.output, s.success, s.told_by) for s in steps] == [
        ("rain", True, "flag"),
        ("sun", True, "flag"),
    ]


def test_arguments_keep_their_keys_and_nothing_is_no_argument(tmp_path: Path) -> None:
    runs = [
        span(str(n), "1" * 32, n, {"gen_ai.tool.name": "x", "gen_ai.tool.call.arguments": given})
        for n, given in enumerate(["", '{"a.b": 1, "0": null}', '{"cut off', {"a.b": {"0": 2}}])
    ]
    assert [s.parameters for s in only(tmp_path, otlp(runs)).trajectory.steps] == [
        {},
        {"a.b": 1, "0": None},
        {"arguments": '{"cut off'},
        {"a.b": {"0": 2}},
    ]


def test_what_is_nested_without_end_is_no_fault(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"inputs": [deep]}
    attributes = {"gen_ai.tool.name": "x", "input.value": json.dumps(deep), ".".join("k" * 3000): 1}
    attempt = only(tmp_path, otlp([span("s", "1" * 32, 0, attributes)]))
    assert len(attempt.trajectory.steps) == 1


def test_messages_that_a_limit_cut_off_stay_as_text(tmp_path: Path) -> None:
    cut = '[{"role": "user", "parts": [{"type": "text", "content": "A long st'
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": cut}
    attempt = only(tmp_path, otlp([span("s", "1" * 32, 0, attributes)]))
    assert [m.content for m in attempt.trajectory.messages] == [cut]


def test_the_input_of_the_root_is_the_task(tmp_path: Path) -> None:
    spans = trace(0, "openinference")
    spans[-1]["attributes"] |= {
        "input.value": json.dumps({"messages": [{"role": "user", "content": "Plan it."}]})
    }
    assert only(tmp_path, otlp(spans)).question == "Plan it."


def test_an_experiment_tells_its_example_and_its_repetition(tmp_path: Path) -> None:
    spans = trace(0, "openinference")
    spans[-1]["attributes"]["metadata"] = json.dumps(
        {"dataset_id": "D1", "example_id": "E7", "repetition_number": 2, "expected_output": "Rain."}
    )
    attempt = only(tmp_path, otlp(spans))
    assert (attempt.namespace, attempt.task_id, attempt.repeat, attempt.expected) == ("D1", "E7", 2, "Rain.")


def test_a_root_that_failed_is_an_infrastructure_error(tmp_path: Path) -> None:
    spans = trace(1)
    event = {"name": "exception", "attributes": {"exception.message": "connection reset"}}
    spans[-1] |= {"status": {"code": "STATUS_CODE_ERROR"}, "events": [event]}
    assert only(tmp_path, otlp(spans)).error == "connection reset"


@pytest.mark.parametrize("parent", ["", None, 0, "0000000000000000", "0x0000000000000000"])
def test_zeros_are_no_parent(tmp_path: Path, parent: Any) -> None:
    spans = trace(1, "newest")
    root = next(s for s in spans if s["spanId"] == "root")
    root |= {"parentSpanId": parent, "status": {"code": 2, "message": "the provider was overloaded"}}
    assert only(tmp_path, otlp(spans)).error == "the provider was overloaded"


def test_a_call_within_a_call_counts_once_and_a_judge_s_not_at_all(tmp_path: Path) -> None:
    spans = trace(0)
    inner = {**spans[0], "spanId": "inner", "parentSpanId": "last"}
    judge = span("judge", spans[0]["traceId"], 4, {"openinference.span.kind": "EVALUATOR"})
    judged = {**spans[0], "spanId": "judged", "parentSpanId": "judge"}
    attempt = only(tmp_path, otlp([*spans, inner, judge, judged]))
    assert (attempt.usage.calls, attempt.usage.prompt_tokens) == (2, 300)


def test_without_calls_of_a_model_the_root_tells_the_tokens(tmp_path: Path) -> None:
    spans = [s for s in trace(0) if s["spanId"] not in ("first", "last")]
    attempt = only(tmp_path, otlp(spans))
    assert (attempt.usage.calls, attempt.usage.prompt_tokens) == (0, 300)
    assert len(attempt.trajectory.steps) == 2


def test_a_trace_without_content_says_whose_it_is(tmp_path: Path) -> None:
    attempt = only(tmp_path, otlp([span("s", "1" * 32, 0, {"gen_ai.operation.name": "chat"})]))
    assert attempt.question == f"Trace {'1' * 32} (its input was not recorded)"


def test_traces_of_something_else_are_left_out_and_told(tmp_path: Path) -> None:
    path = written(tmp_path, otlp([span("s", "1" * 32, 0, {"http.request.method": "GET"})]))
    assert remarks_of(FORM, path) == ["A trace without a call of a model or a run of a tool was left out."]


def test_damaged_lines_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    make(path, 1)
    path.write_bytes(path.read_bytes() + b'{"a": 1}\n{"resourceSpans": [{"sc')
    assert len(attempts_of(FORM, path)) == 1
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [
        ("line 3", "no span: it has no ids or no attributes"),
        ("line 4", "the line is cut off: its JSON ends in the middle"),
    ]


def test_other_files_are_not_taken_for_spans(tmp_path: Path) -> None:
    for value in ({"trace_id": "1", "span_id": "2"}, {"messages": []}, [{"data": [{"id": 1}]}], {"spans": 3}):
        assert not FORM.recognises(opened(written(tmp_path, value)))
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"prompt": ["a"]}), path)
    assert not FORM.recognises(opened(path))
