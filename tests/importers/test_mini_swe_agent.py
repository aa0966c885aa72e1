"""Trajectories of mini-swe-agent are read as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers.attempt import Attempt
from core.importers.formats.mini_swe_agent import MiniSweAgent
from core.importers.opened import Opened
from tests.importers.make_mini_swe_agent import block, make, messages, traj
from tests.importers.making import asides_of, attempts_of, counted, opened, read
from tests.importers.mutating import mutations, read_lines

FORM = MiniSweAgent()


def one(folder: Path, value: Any, name: str = "local.traj.json") -> Attempt:
    path = folder / name
    path.write_text(json.dumps(value, indent=2))
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    return attempt


def talking(*turns: dict[str, Any]) -> dict[str, Any]:
    return traj(messages=[*messages()[:2], *turns])


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "collected.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == told
    assert (told.attempts, told.tasks, told.unscored, told.errors, told.steps) == (12, 3, 9, 3, 36)


def test_commands_in_fenced_blocks_are_steps_and_the_exit_code_tells(tmp_path: Path) -> None:
    attempt = one(tmp_path, traj())
    assert [(s.tool, s.parameters["command"], s.success, s.told_by) for s in attempt.trajectory.steps] == [
        ("bash", "make", False, "exit code"),
        ("bash", "ls", True, "exit code"),
        ("bash", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", None, ""),
    ]
    assert (attempt.model, attempt.agent, attempt.question) == ("maker-1", "mini-swe-agent 1.14.2", "Mend 0.")
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("the patch", "Submitted")
    assert attempt.usage.model_dump() == {
        "calls": 3,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "cost_usd": 0.25,
    }


def test_a_bare_list_of_messages_is_read(tmp_path: Path) -> None:
    attempt = one(tmp_path, messages())
    assert (len(attempt.trajectory.steps), attempt.task_id, attempt.usage.calls) == (3, None, 3)


def test_a_bare_list_in_another_encoding_is_set_aside_and_not_read_with_holes(tmp_path: Path) -> None:
    said = [*messages(), {"role": "user", "content": "caf\xe9"}]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(said, ensure_ascii=False), encoding="latin-1")
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [("the file", "bytes of it are not UTF-8")]
    assert attempts_of(FORM, path) == []


def test_messages_of_others_are_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]))
    assert not FORM.recognises(opened(path))
    path.write_text(json.dumps({"messages": messages(), "info": {"a": 1}}))
    assert not FORM.recognises(opened(path))


def test_calls_of_tools_and_codes_beside_the_text_are_read(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    used = {"response": {"usage": {"prompt_tokens": 50, "completion_tokens": 5}}, "cost": 0.1}
    attempt = one(
        tmp_path,
        talking(
            {"role": "assistant", "content": None, "tool_calls": [call], "extra": used},
            {"role": "tool", "tool_call_id": "c1", "content": "nothing", "extra": {"returncode": 1}},
            {"role": "exit", "content": "", "extra": {"exit_status": "LimitsExceeded", "submission": ""}},
        ),
    )
    (step,) = attempt.trajectory.steps
    assert (step.parameters, step.output, step.success, step.told_by) == (
        {"command": "ls"},
        "nothing",
        False,
        "exit code",
    )
    assert (attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (50, 5)
    assert [m.role for m in attempt.trajectory.messages] == ["system", "user", "assistant", "tool"]


def test_items_of_the_responses_api_are_read(tmp_path: Path) -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'}
    answer = {"type": "function_call_output", "call_id": "c1", "output": "a", "extra": {"returncode": 0}}
    (step,) = one(tmp_path, talking({"object": "response", "output": [item]}, answer)).trajectory.steps
    assert (step.tool, step.output, step.success) == ("bash", "a", True)


def test_commands_that_were_parsed_out_of_a_reply_are_steps(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": "<run>ls</run>", "extra": {"actions": [{"command": "ls"}]}}
    attempt = one(tmp_path, talking(said, {"role": "user", "content": "a", "extra": {"returncode": 0}}))
    assert [(s.parameters, s.success) for s in attempt.trajectory.steps] == [({"command": "ls"}, True)]


def test_a_reply_that_could_not_be_read_is_no_step(tmp_path: Path) -> None:
    two = {"role": "assistant", "content": block("a") + "\n" + block("b")}
    attempt = one(tmp_path, talking(two, {"role": "user", "content": "Please give EXACTLY ONE action."}))
    assert (attempt.trajectory.steps, attempt.trajectory.messages[-1].role) == ((), "user")


def test_a_command_that_was_killed_failed(tmp_path: Path) -> None:
    late = {
        "role": "user",
        "content": "The last command <command>x</command> timed out and has been killed.\n...",
    }
    (step,) = one(
        tmp_path, talking({"role": "assistant", "content": block("x", "bash")}, late)
    ).trajectory.steps
    assert (step.success, step.error, step.told_by) == (False, late["content"].strip(), "text")


@pytest.mark.parametrize(
    ("status", "broke"),
    [
        ("Submitted", False),
        ("LimitsExceeded", False),
        ("RateLimitError", True),
        ("ContextWindowExceededError", False),
    ],
)
def test_an_exception_is_an_error_and_a_limit_is_none(tmp_path: Path, status: str, broke: bool) -> None:
    assert (one(tmp_path, traj(status=status)).error is not None) is broke


def test_an_exception_by_any_name_is_known_by_its_traceback(tmp_path: Path) -> None:
    value = traj(status="CalledProcessFailure")
    assert one(tmp_path, value).error is None
    value["info"]["traceback"] = "Traceback ..."
    assert one(tmp_path, value).error == "CalledProcessFailure"


def test_the_instance_and_its_verdict_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "run" / "a__b-1" / "a__b-1.traj.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(traj()))
    (tmp_path / "run" / "report.json").write_text(
        json.dumps({"resolved_ids": [], "unresolved_ids": ["a__b-1"]})
    )
    (attempt,) = [f for f in FORM.read(Opened(path, root=tmp_path)) if isinstance(f, Attempt)]
    assert (attempt.task_id, attempt.scores["resolved"].value) == ("a__b-1", 0.0)
    assert one(tmp_path, traj(instance_id="own")).task_id == "own"


def test_a_file_that_is_cut_off_is_refused_and_a_bad_line_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "x.traj.json"
    for value in (traj(), messages()):
        path.write_text(json.dumps(value, indent=2)[:-20])
        with pytest.raises(InputError, match="cut off"):
            read(FORM, path)
    path.write_text("\n".join([json.dumps(traj()), "{", json.dumps({"messages": 1}), json.dumps(traj())]))
    assert [a.place for a in asides_of(FORM, path)] == ["line 2", "line 3"]


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    value = talking(
        {
            "role": "assistant",
            "content": block("a"),
            "extra": {"response": {"usage": {"prompt_tokens": 1}}, "cost": 1},
        },
        {"role": "user", "content": "<returncode>0</returncode>", "extra": {"returncode": 0}},
        {"role": "exit", "content": "", "extra": {"exit_status": "x"}},
    )
    values = [traj(), *mutations(value)]
    assert sum(read_lines(FORM, tmp_path / "x.jsonl", values)) == len(values)
    path = tmp_path / "x.json"
    recognised = 0
    for changed in mutations(messages()[:4]):
        path.write_text(json.dumps(changed))
        if FORM.recognises(opened(path)):
            recognised += 1
            assert read(FORM, path)
    assert recognised > 20
