"""What `codex exec --json` prints is read as it means it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.importers.attempt import Attempt
from core.importers.formats.codex_exec import CodexExec
from tests.importers.make_codex_exec import command, item, make, thread
from tests.importers.making import Counts, asides_of, attempts_of, counted, opened, read, remarks_of

FORM = CodexExec()
HEAD: list[dict[str, Any]] = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]


def only(tmp_path: Path, *lines: dict[str, Any]) -> Attempt:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [*HEAD, *lines]))
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    return attempt


def test_a_file_of_threads_is_counted_as_a_person_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "threads.jsonl"
    counts = make(path)
    assert counts == Counts(
        attempts=12,
        tasks=12,
        unscored=12,
        steps=24,
        succeeded=15,
        failed=6,
        prompt_tokens=12000,
        completion_tokens=600,
    )
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == counts
    assert remarks_of(FORM, path) == []


def test_a_thread_tells_whose_it_is_and_where_its_file_lay(tmp_path: Path) -> None:
    attempt = only(tmp_path, *thread(1)[2:])
    assert attempt.question == "Codex thread t (its prompt was not recorded)"
    assert (attempt.own_id, attempt.metadata["folder"], attempt.metadata["file"]) == (
        "t",
        tmp_path.name,
        "run",
    )
    assert (attempt.trajectory.answer, attempt.usage.calls) == ("Done 1.", 1)


def test_the_last_word_of_an_item_counts(tmp_path: Path) -> None:
    attempt = only(
        tmp_path,
        command("started", "a", None),
        command("completed", "a", 2, "no"),
        command("started", "b", None),
    )
    assert [(s.success, s.told_by, s.output) for s in attempt.trajectory.steps] == [
        (False, "flag", "no"),
        (None, "", ""),
    ]


def test_calls_of_other_kinds_are_steps(tmp_path: Path) -> None:
    attempt = only(
        tmp_path,
        item(
            "completed",
            "a",
            "mcp_tool_call",
            tool="look",
            arguments={"q": 1},
            result={"content": [{"type": "text", "text": "x"}]},
        ),
        item(
            "completed",
            "b",
            "mcp_tool_call",
            tool="look",
            arguments={},
            error={"message": "gone"},
            status="failed",
        ),
        item("completed", "c", "file_change", changes=[{"path": "a", "kind": "add"}], status="completed"),
        item("completed", "d", "web_search", query="weather"),
        item("completed", "e", "todo_list", items=[]),
    )
    assert [(s.tool, s.success) for s in attempt.trajectory.steps] == [
        ("look", None),
        ("look", False),
        ("apply_patch", True),
        ("web_search", None),
    ]
    assert [s.output for s in attempt.trajectory.steps] == ["x", "gone", "", ""]
    assert attempt.trajectory.steps[3].parameters == {"query": "weather"}


def test_calls_of_sub_agents_and_a_plan_are_read(tmp_path: Path) -> None:
    asked = {"prompt": "Look.", "sender_thread_id": "t", "receiver_thread_ids": ["u"]}
    states = {"u": {"status": "completed", "message": "Seen."}}
    attempt = only(
        tmp_path,
        item(
            "completed",
            "a",
            "collab_tool_call",
            tool="wait",
            agents_states=states,
            status="completed",
            **asked,
        ),
        {"type": "item.plan.delta", "item_id": "b", "delta": "First"},
        item("completed", "b", "plan", text="First this, then that."),
    )
    [step] = attempt.trajectory.steps
    assert (step.tool, step.success, json.loads(step.output)) == ("wait", True, states)
    assert step.parameters == {"prompt": "Look.", "receiver_thread_ids": ["u"]}
    assert attempt.trajectory.answer == "First this, then that."
    assert remarks_of(FORM, tmp_path / "run.jsonl") == []


def test_a_thread_that_was_resumed_is_one_attempt(tmp_path: Path) -> None:
    again = [
        *HEAD,
        command("completed", "a", 1, "two"),
        {"type": "turn.completed", "usage": {"input_tokens": 30}},
    ]
    attempt = only(tmp_path, command("completed", "a", 0, "one"), *again)
    assert [(s.output, s.success) for s in attempt.trajectory.steps] == [("one", True), ("two", False)]
    assert (attempt.usage.calls, attempt.usage.prompt_tokens) == (2, 30)


def test_a_turn_that_failed_last_is_an_infrastructure_error_and_a_notice_is_none(tmp_path: Path) -> None:
    notice = {"type": "error", "message": "retrying"}
    failed = {"type": "turn.failed", "error": {"message": "401 Unauthorized"}}
    assert only(tmp_path, notice).error is None
    assert only(tmp_path, failed).error == "401 Unauthorized"
    assert only(tmp_path, failed, {"type": "turn.started"}).error is None


def test_tokens_are_running_totals(tmp_path: Path) -> None:
    ends = [{"type": "turn.completed", "usage": {"input_tokens": n, "output_tokens": 1}} for n in (10, 30)]
    assert only(tmp_path, *ends).usage.prompt_tokens == 30


def test_damaged_and_unknown_events_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    make(path, 1)
    path.write_bytes(path.read_bytes() + b'{"type": "brand.new"}\n{"a": 1}\n{"type": "ite')
    assert len(attempts_of(FORM, path)) == 1
    assert remarks_of(FORM, path) == ["Events of type 'brand.new' are not known and were left out."]
    assert [a.reason for a in asides_of(FORM, path)] == [
        "no event: it has no type",
        "the line is cut off: its JSON ends in the middle",
    ]
