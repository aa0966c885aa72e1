"""Trajectories of SWE-agent are read as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers.attempt import Attempt
from core.importers.formats.swe_agent import SweAgent
from core.importers.opened import Opened
from tests.importers.make_swe_agent import call, make, place, report, step, traj
from tests.importers.making import asides_of, attempts_of, counted, opened, read
from tests.importers.mutating import mutations, read_lines

FORM = SweAgent()
ONE = "made__repo-1"


def one(folder: Path, value: dict[str, Any]) -> Attempt:
    path = place(folder, "run", ONE, value)
    (attempt,) = [f for f in FORM.read(Opened(path, root=folder)) if isinstance(f, Attempt)]
    return attempt


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "collected.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == told
    assert (told.attempts, told.tasks, told.unscored, told.errors, told.steps) == (12, 3, 9, 3, 36)
    assert (told.succeeded, told.failed, told.prompt_tokens) == (12, 12, 1200)


def test_a_trajectory_is_told_whole_and_demonstrations_are_left_out(tmp_path: Path) -> None:
    attempt = one(tmp_path, traj())
    assert (attempt.task_id, attempt.namespace, attempt.question) == (ONE, "SWE-bench", f"Mend {ONE}.")
    assert (attempt.model, attempt.agent) == ("maker-1", "SWE-agent (defaults, edit)")
    assert [m.role for m in attempt.trajectory.messages] == ["system", "user", *["assistant", "tool"] * 3]
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == (
        "diff --git a/x b/x",
        "submitted",
    )
    assert attempt.usage.model_dump() == {
        "calls": 3,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cost_usd": 0.5,
    }


def test_steps_have_the_arguments_of_the_history_and_the_output_of_the_trajectory(tmp_path: Path) -> None:
    steps = one(tmp_path, traj()).trajectory.steps
    assert [(s.tool, s.parameters, s.success, s.told_by, s.duration_s) for s in steps] == [
        ("edit", {"old": "a", "new": "b"}, False, "text", 0.25),
        ("edit", {"old": "a", "new": "c"}, True, "text", 0.25),
        ("submit", {}, None, "", 0.25),
    ]
    assert steps[2].output == "\ndiff --git a/x b/x"


def test_without_calls_in_the_history_the_command_tells_the_tool(tmp_path: Path) -> None:
    value = traj()
    value["history"] = value["history"][:4]
    assert [(s.tool, s.parameters) for s in one(tmp_path, value).trajectory.steps] == [
        ("edit", {"command": "edit 'a' 'b'"}),
        ("edit", {"command": "edit 'a' 'c'"}),
        ("submit", {"command": "submit"}),
    ]
    value["trajectory"] = [step("python x.py", "Traceback (most recent call last):\n...")]
    (ran,) = one(tmp_path, value).trajectory.steps
    assert (ran.tool, ran.success) == ("bash", False)


def test_an_observation_that_is_empty_is_a_result_and_one_that_is_missing_is_none(tmp_path: Path) -> None:
    value = traj()
    value["trajectory"] = [step("rm x.py", ""), *(step("ls", "x") for _ in range(2)), step("submit", None)]
    steps = one(tmp_path, value).trajectory.steps
    assert [(s.output, s.success) for s in steps] == [("", True), ("x", None), ("x", None), ("", None)]
    assert steps[0].told_by == "text"


def test_without_a_history_the_first_query_tells_what_was_said(tmp_path: Path) -> None:
    value = traj(replay_config=None)
    said = [m for m in value.pop("history") if not m.get("is_demo")]
    value["trajectory"] = [s | {"query": said[: 2 + 2 * n]} for n, s in enumerate(value["trajectory"])]
    attempt = one(tmp_path, value)
    assert (attempt.question, attempt.system, len(attempt.trajectory.messages)) == (
        f"Mend {ONE}.",
        "Rules.",
        8,
    )


def test_a_history_alone_is_read(tmp_path: Path) -> None:
    attempt = one(tmp_path, {"history": traj()["history"]})
    assert [s.tool for s in attempt.trajectory.steps] == ["edit", "edit", "submit"]
    assert (attempt.orphans, attempt.question) == (0, f"Mend {ONE}.")


def test_a_configuration_may_be_json_in_a_string(tmp_path: Path) -> None:
    value = traj()
    assert one(tmp_path, value | {"replay_config": json.dumps(value["replay_config"])}).model == "maker-1"
    assert one(tmp_path, value | {"replay_config": "{oops"}).agent == "SWE-agent"


def test_a_reply_without_an_action_is_no_step(tmp_path: Path) -> None:
    value = traj()
    value["trajectory"].insert(0, step("", "Your output could not be parsed.", thought="Hm"))
    attempt = one(tmp_path, value)
    assert len(attempt.trajectory.steps) == 3
    assert [(m.role, m.content) for m in attempt.trajectory.messages[2:4]] == [
        ("assistant", "Hm"),
        ("user", "Your output could not be parsed."),
    ]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("submitted", None),
        ("submitted (exit_cost)", None),
        ("exit_context", None),
        ("exit_format", None),
        ("exit_api", "exit_api"),
        ("submitted (exit_environment_error)", "submitted (exit_environment_error)"),
        (None, None),
    ],
)
def test_what_broke_outside_is_an_error_and_a_limit_is_none(
    tmp_path: Path, status: str | None, error: str | None
) -> None:
    assert one(tmp_path, traj(status=status)).error == error


def test_a_verdict_comes_from_a_report_and_outweighs_a_late_error(tmp_path: Path) -> None:
    place(tmp_path, "run", ONE, traj())
    (tmp_path / "run" / "report.json").write_text(json.dumps(report(resolved=[ONE])))
    attempt = one(tmp_path, traj(status="submitted (exit_error)"))
    assert (attempt.scores["resolved"].value, attempt.reward, attempt.error) == (1.0, "resolved", None)


def test_several_tries_of_one_file_are_attempts_and_the_verdict_is_of_the_chosen_one(tmp_path: Path) -> None:
    first, second = traj(), traj()
    first["info"]["submission"] = "another patch"
    value = traj() | {"attempts": [first, second]}
    path = place(tmp_path, "run", ONE, value)
    (tmp_path / "run" / "report.json").write_text(json.dumps(report(resolved=[ONE])))
    attempts = [f for f in FORM.read(Opened(path, root=tmp_path)) if isinstance(f, Attempt)]
    assert [(a.repeat, bool(a.scores), a.model) for a in attempts] == [
        (0, False, "maker-1"),
        (1, True, "maker-1"),
    ]


def test_a_row_of_a_data_set_has_its_verdict_with_it(tmp_path: Path) -> None:
    said = [
        {"role": "system", "text": None, "system_prompt": "Rules."},
        {"role": "user", "text": "Mend it."},
        {"role": "ai", "text": "I look.\n```\nls\n```"},
        {"role": "user", "text": "a b"},
        {"role": "ai", "text": "Done, I think."},
    ]
    row = {
        "instance_id": ONE,
        "model_name": "maker-1",
        "target": True,
        "trajectory": said,
        "exit_status": "submitted",
    }
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps(r) + "\n" for r in (row, row | {"target": False, "exit_status": "exit_api"}))
    )
    assert FORM.recognises(opened(path))
    good, broken = attempts_of(FORM, path)
    assert (good.task_id, good.question, good.system, good.model) == (ONE, "Mend it.", "Rules.", "maker-1")
    assert [(s.tool, s.parameters, s.output) for s in good.trajectory.steps] == [
        ("bash", {"command": "ls"}, "a b")
    ]
    assert (good.scores["resolved"].value, good.reward, broken.error) == (1.0, "resolved", "exit_api")


def test_a_half_written_file_is_refused_and_a_bad_line_set_aside(tmp_path: Path) -> None:
    path = place(tmp_path, "run", ONE, json.dumps(traj(), indent=2)[:-40])
    with pytest.raises(InputError, match="cut off"):
        read(FORM, path)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join([json.dumps(traj()), "{", json.dumps({"history": []}), json.dumps(traj())]))
    assert [a.place for a in asides_of(FORM, lines)] == ["line 2", "line 3"]
    assert len(attempts_of(FORM, lines)) == 2


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    small = traj() | {"trajectory": [step("edit", "x")], "attempts": [{"trajectory": [], "info": {}}]}
    small["history"] = [
        *small["history"][:4],
        {"role": "assistant", "content": "x", "tool_calls": [call("edit", a=1)]},
    ]
    said = [{"role": "user", "text": "x"}, {"role": "ai", "text": "```\nls\n```"}]
    row = {"instance_id": ONE, "target": True, "trajectory": said}
    values = [traj(), *mutations(small), *mutations(small | {"attempts": None}), *mutations(row)]
    assert sum(read_lines(FORM, tmp_path / "x.jsonl", values)) == len(values)
