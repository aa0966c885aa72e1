"""Sessions of Claude Code are read as their program means them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.importers.attempt import Attempt
from core.importers.formats.claude_code import ClaudeCode
from core.importers.opened import Opened
from tests.importers.make_claude_code import PROMPTS, Session, make, usage
from tests.importers.making import Counts, asides_of, attempts_of, counted, opened, read, remarks_of

FORM = ClaudeCode()
USED = usage(1, 2, 3, 4)


def written(tmp_path: Path, lines: list[dict[str, Any]], name: str = "session.jsonl") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def only(tmp_path: Path, it: Session) -> Attempt:
    found = attempts_of(FORM, written(tmp_path, it.lines))
    assert len(found) == 1
    return found[0]


def test_a_file_of_sessions_is_counted_as_a_person_counts_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    counts = make(path)
    assert counts == Counts(
        attempts=12,
        tasks=3,
        unscored=12,
        steps=24,
        succeeded=15,
        failed=6,
        prompt_tokens=26583,
        completion_tokens=847,
        sub_agents=1,
    )
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == counts
    assert remarks_of(FORM, path) == []


def test_a_session_tells_its_task_its_model_and_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    make(path, 2)
    first = attempts_of(FORM, path)[0]
    assert (first.question, first.namespace, first.model, first.agent) == (
        PROMPTS[0],
        "widget",
        "claude-test-1",
        "claude-code",
    )
    assert (first.own_id, first.task_id, first.repeat, first.scores) == ("session-0000", None, None, {})
    assert first.trajectory.answer == "Done, number 0."
    assert first.metadata["git_branch"] == "main"
    assert [m.role for m in first.trajectory.messages] == ["user", "assistant", "tool", "assistant"]


def test_lines_of_one_message_are_one_turn_and_count_once(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Do both.")
    it.call("m", "a", usage(10, 0, 0, 1))
    it.call("m", "b", usage(10, 0, 0, 9))
    it.result("a", "one", error=False)
    it.result("b", "two", error=False)
    attempt = only(tmp_path, it)
    assert [s.turn for s in attempt.trajectory.steps] == [0, 0]
    assert [s.output for s in attempt.trajectory.steps] == ["one", "two"]
    assert (attempt.usage.calls, attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (1, 10, 9)


def test_a_call_that_the_user_interrupted_neither_succeeded_nor_failed(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Do all.")
    it.call("m", "a", USED)
    it.call("m", "b", USED)
    it.call("m", "c", USED)
    it.call("m", "d", USED)
    it.result("d", "", error=False, toolUseResult={"interrupted": True})
    it.result("a", "[Request interrupted by user for tool use]", error=True)
    it.result("b", "half an outp", error=False, toolUseResult={"interrupted": True})
    it.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    attempt = only(tmp_path, it)
    assert [s.success for s in attempt.trajectory.steps] == [None, None, None, None]
    assert attempt.trajectory.finish_reason == "interrupted"
    assert attempt.error is None


def test_a_result_without_a_mark_is_of_unknown_success(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Write.")
    it.call("m", "a", USED)
    it.result("a", "File created.")
    (step,) = only(tmp_path, it).trajectory.steps
    assert (step.success, step.told_by, step.output) == (None, "", "File created.")


def test_a_result_without_a_call_is_counted_and_kept(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Go on.")
    it.result("lost", "from before the crash", error=False)
    it.say("m", "Well.", USED)
    attempt = only(tmp_path, it)
    assert attempt.orphans == 1
    assert "from before the crash" in [m.content for m in attempt.trajectory.messages]


def test_what_the_program_wrote_is_no_turn_of_the_user(tmp_path: Path) -> None:
    it = Session("s")
    it.user("<local-command-stdout>Set model</local-command-stdout>")
    it.user("Summary of all before.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    it.user([{"type": "text", "text": "<system-reminder>Be brief.</system-reminder>Say hello."}])
    it.say("m", "Hello.", USED)
    attempt = only(tmp_path, it)
    assert attempt.question == "Say hello."
    assert [m.content for m in attempt.trajectory.messages] == ["Say hello.", "Hello."]
    assert attempt.metadata["compactions"] == 1


def test_a_session_that_begins_with_a_command_has_the_command_as_its_task(tmp_path: Path) -> None:
    it = Session("s")
    it.user("<command-name>/fix</command-name>\n<command-args>issue 7</command-args>")
    it.user("Long instructions of the command.", isMeta=True)
    it.say("m", "Fixed.", USED)
    assert only(tmp_path, it).question == "/fix issue 7"


def test_turns_that_were_taken_back_are_left_out_but_what_they_took_counts(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Begin.")
    fork = it.say("m1", "Yes.", USED)
    it.user("Wrong way.")
    it.call("m2", "a", USED)
    it.result("a", "harm", error=True)
    it.last = fork
    it.user("Right way.")
    it.say("m3", "Good.", USED)
    attempt = only(tmp_path, it)
    assert [m.content for m in attempt.trajectory.messages] == ["Begin.", "Yes.", "Right way.", "Good."]
    assert attempt.trajectory.steps == ()
    assert attempt.usage.calls == 3
    assert attempt.metadata["turns_taken_back"] == 2


def test_a_last_reply_that_is_an_error_of_the_interface_is_an_infrastructure_error(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Go.")
    it.say("m1", "API Error: 500", USED, isApiErrorMessage=True, message={"model": "<synthetic>"})
    failed = only(tmp_path, it)
    assert (failed.error, failed.model, failed.usage.calls) == ("API Error: 500", "", 0)
    it.say("m2", "There.", USED)
    assert only(tmp_path, it).error is None


def test_a_session_that_was_resumed_under_a_new_id_is_one_attempt(tmp_path: Path) -> None:
    it = Session("old")
    it.user("Begin.")
    it.say("m1", "Yes.", USED)
    it.own = "new"
    it.user("Go on.")
    it.say("m2", "Done.", USED)
    it.lines += it.lines[:2]  # older programs copied what came before
    attempt = only(tmp_path, it)
    assert [m.content for m in attempt.trajectory.messages] == ["Begin.", "Yes.", "Go on.", "Done."]
    assert (attempt.own_id, attempt.usage.calls) == ("old", 2)


def test_interleaved_sessions_are_told_apart(tmp_path: Path) -> None:
    one, two = Session("one"), Session("two")
    for it in (one, two):
        it.user(f"Task {it.own}.")
        it.say(f"m-{it.own}", f"Done {it.own}.", USED)
    lines = [line for pair in zip(one.lines, two.lines, strict=True) for line in pair]
    found = attempts_of(FORM, written(tmp_path, lines))
    assert [(a.question, a.trajectory.answer) for a in found] == [
        ("Task one.", "Done one."),
        ("Task two.", "Done two."),
    ]


def test_files_of_sub_agents_are_no_attempts_and_their_tokens_are_the_session_s(tmp_path: Path) -> None:
    main, agent = Session("s"), Session("s", sidechain="ab12")
    main.user("Ask somebody.")
    main.say("m1", "I asked.", usage(10, 0, 0, 5))
    agent.user("Look.")
    agent.say("m2", "Seen.", usage(100, 0, 0, 50))
    agent.say("m1", "A copy of the session's own message.", usage(10, 0, 0, 5))
    (whole,) = attempts_of(FORM, written(tmp_path, main.lines, "s.jsonl"))
    assert (whole.usage.calls, whole.usage.prompt_tokens) == (1, 10)
    beside = written(tmp_path, agent.lines, "s/subagents/agent-ab12.jsonl")
    (whole,) = attempts_of(FORM, tmp_path / "s.jsonl")
    assert (whole.usage.calls, whole.usage.prompt_tokens, whole.usage.completion_tokens) == (2, 110, 55)
    (part,) = attempts_of(FORM, beside)
    assert (part.ends, part.own_id, part.question) == (False, "s/ab12", "Look.")


def test_what_a_headless_run_prints_is_read_as_well(tmp_path: Path) -> None:
    lines = [
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s",
            "cwd": "/x/widget",
            "model": "claude-test-1",
        },
        {
            "type": "assistant",
            "session_id": "s",
            "message": {
                "id": "m",
                "model": "claude-test-1",
                "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}],
                "usage": USED,
            },
        },
        {
            "type": "user",
            "session_id": "s",
            "message": {"content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        },
        {
            "type": "result",
            "subtype": "error_max_turns",
            "session_id": "s",
            "is_error": True,
            "duration_ms": 2500,
            "total_cost_usd": 0.25,
        },
    ]
    path = written(tmp_path, lines)
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    assert "not recorded" in attempt.question
    assert (attempt.duration_s, attempt.usage.cost_usd, attempt.usage.calls) == (2.5, 0.25, 1)
    assert (attempt.error, attempt.trajectory.finish_reason) == (None, "step limit")
    lines[-1]["subtype"] = "error_during_execution"
    (attempt,) = attempts_of(FORM, written(tmp_path, lines))
    assert attempt.error == "Claude Code broke off with an error"


@pytest.mark.parametrize(
    ("more", "tokens"),
    [
        ({}, (110, 3)),
        ({"usage": usage(10, 0, 500, 80)}, (510, 80)),
        (
            {
                "usage": usage(10, 0, 500, 80),
                "modelUsage": {
                    "big": {"inputTokens": 10, "cacheReadInputTokens": 500, "outputTokens": 80},
                    "small": {"inputTokens": 7, "cacheCreationInputTokens": 3, "outputTokens": 5},
                },
            },
            (520, 85),
        ),
        ({"usage": usage(1, 0, 0, 1), "modelUsage": {"big": {}}}, (110, 3)),
        ({"usage": None, "modelUsage": [1]}, (110, 3)),
    ],
)
def test_the_last_line_of_a_headless_run_has_the_sum_of_its_tokens(
    tmp_path: Path, more: dict[str, Any], tokens: tuple[int, int]
) -> None:
    said = {"id": "m", "content": [{"type": "text", "text": "Done."}], "usage": usage(10, 0, 100, 3)}
    end = {"type": "result", "subtype": "success", "session_id": "s", "is_error": False, **more}
    lines = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "session_id": "s", "message": said},
        end,
    ]
    (attempt,) = attempts_of(FORM, written(tmp_path, lines))
    assert (attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == tokens


def test_a_headless_run_that_broke_off_says_why(tmp_path: Path) -> None:
    said = {"id": "m", "content": [{"type": "text", "text": "Wait."}]}
    start = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "session_id": "s", "message": said},
    ]
    end = {"type": "result", "session_id": "s", "is_error": True}
    ends = [
        {**end, "subtype": "error_during_execution", "errors": ["no network", "gave up"]},
        {**end, "subtype": "error_max_budget_usd", "errors": ["too dear"]},
    ]
    found = [attempts_of(FORM, written(tmp_path, [*start, each]))[0] for each in ends]
    assert [(a.error, a.trajectory.finish_reason) for a in found] == [
        ("no network; gave up", None),
        (None, "cost limit"),
    ]


def test_damaged_lines_are_set_aside_and_the_session_stands(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Go.")
    it.say("m", "Gone.", USED)
    path = written(tmp_path, it.lines)
    good = path.read_bytes().split(b"\n")
    path.write_bytes(
        b"\n".join([good[0], b'{"type": "user", "mess', b"[1]", b'{"a": 1}', b'{"type":"\xff"}', good[1]])
    )
    (attempt,) = attempts_of(FORM, path)
    assert attempt.trajectory.answer == "Gone."
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [
        ("line 2", "the line is cut off: its JSON ends in the middle"),
        ("line 3", "the line is no JSON object"),
        ("line 4", "no record of a session: it has no type"),
        ("line 5", "the line is not UTF-8 (byte 10 of it)"),
    ]


def test_unknown_records_are_told_and_known_noise_is_not(tmp_path: Path) -> None:
    it = Session("s")
    it.user("Go.")
    it.line("progress")
    it.line("brand-new")
    assert remarks_of(FORM, written(tmp_path, it.lines)) == [
        "Records of type 'brand-new' are not known and were left out."
    ]


def test_a_file_in_which_nobody_speaks_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, [{"type": "summary", "summary": "x", "leafUuid": "y"}])
    assert FORM.recognises(opened(path))
    assert remarks_of(FORM, path) == ["A file of Claude Code holds no turn of anybody."]


def test_other_files_are_not_taken_for_sessions(tmp_path: Path) -> None:
    path = written(tmp_path, [{"type": "session_meta", "payload": {}}, {"type": "message", "role": "user"}])
    assert not FORM.recognises(opened(path))
    assert not FORM.recognises(Opened(written(tmp_path, [{"messages": []}])))
