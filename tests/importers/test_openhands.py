"""Output and events of OpenHands are read as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers.attempt import Attempt
from core.importers.formats.openhands import OpenHands
from core.importers.opened import Opened
from tests.importers.make_openhands import act, code, history, make, row, saw, sdk_events
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import mutations, read_lines

FORM = OpenHands()


def one(folder: Path, value: Any) -> Attempt:
    path = folder / "output.jsonl"
    path.write_text(json.dumps(value))
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    return attempt


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == told
    assert (told.attempts, told.tasks, told.scored, told.unscored, told.errors) == (12, 3, 6, 3, 3)
    assert (told.steps, told.succeeded, told.failed, told.prompt_tokens) == (48, 12, 24, 2400)


def test_a_row_is_told_whole(tmp_path: Path) -> None:
    attempt = one(tmp_path, row())
    assert (attempt.namespace, attempt.task_id, attempt.question) == (
        "SWE-bench",
        "made__repo-1",
        "Mend made__repo-1.",
    )
    assert (attempt.model, attempt.agent, attempt.run) == ("maker-1", "OpenHands CodeActAgent", "run_1")
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("the patch", "stop")
    assert [(s.tool, s.parameters, s.success, s.told_by) for s in attempt.trajectory.steps] == [
        ("bash", {"said": 4}, False, "exit code"),
        ("bash", {"said": 6}, True, "exit code"),
        ("edit", {"path": "a"}, False, "text"),
        ("run", {"command": "sleep"}, None, ""),
    ]
    assert [m.content for m in attempt.trajectory.messages if m.role == "assistant"][-1] == "Done."
    assert (attempt.system, attempt.orphans, attempt.duration_s) == ("Rules.", 0, 13.0)


def test_running_totals_are_counted_once(tmp_path: Path) -> None:
    assert one(tmp_path, row()).usage.model_dump() == {
        "calls": 2,
        "prompt_tokens": 200,
        "completion_tokens": 20,
        "cost_usd": 0.5,
    }
    totals = [
        {"accumulated_cost": c, "accumulated_token_usage": {"prompt_tokens": p}}
        for c, p in ((0.1, 10), (0.2, 30))
    ]
    events = [act(n, "run", f"r{n}") | {"llm_metrics": t} for n, t in enumerate(totals)]
    usage = one(tmp_path, row(metrics=None, history=events)).usage
    assert (usage.prompt_tokens, usage.cost_usd, usage.calls) == (30, 0.2, 2)


def test_actions_of_one_reply_share_a_turn_though_results_stand_between(tmp_path: Path) -> None:
    events = [
        act(1, "run", "r1"),
        saw(2, 1, **code(0)),
        act(3, "run", "r1"),
        saw(4, 3, **code(0)),
        act(5, "run", "r2"),
    ]
    assert [s.turn for s in one(tmp_path, row(history=events)).trajectory.steps] == [0, 0, 1]


@pytest.mark.parametrize(
    ("error", "told", "reason"),
    [
        (
            "RuntimeError: Agent reached maximum iteration in headless mode. Current iteration: 50",
            None,
            "step limit",
        ),
        ("AgentStuckInLoopError: Agent got stuck in a loop", None, "stuck in a loop"),
        ("RuntimeError: the container is gone", "RuntimeError: the container is gone", "stop"),
    ],
)
def test_a_limit_is_no_infrastructure_error(
    tmp_path: Path, error: str, told: str | None, reason: str
) -> None:
    attempt = one(tmp_path, row(error=error))
    assert (attempt.error, attempt.trajectory.finish_reason) == (told, reason)


def test_a_verdict_stands_in_the_row_or_in_a_report_beside_it(tmp_path: Path) -> None:
    assert one(tmp_path, row()).scores == {}
    assert one(tmp_path, row(report={"resolved": False})).scores["resolved"].value == 0.0
    assert one(tmp_path, row(test_result={"report": {"resolved": True}})).scores["resolved"].value == 1.0
    (tmp_path / "report.json").write_text(json.dumps({"resolved_ids": ["made__repo-1"]}))
    assert one(tmp_path, row()).scores["resolved"].value == 1.0


def test_an_evaluation_that_failed_says_nothing(tmp_path: Path) -> None:
    seen = one(tmp_path, row(report={"resolved": False, "test_timeout": True})).scores["resolved"]
    assert (seen.value, seen.raw) == (None, "test_timeout")


def test_numbers_of_other_benchmarks_are_scores_of_which_none_is_the_reward(tmp_path: Path) -> None:
    attempt = one(tmp_path, row(test_result={"score": 0.5, "passed": True, "log": "x"}))
    assert {n: s.value for n, s in attempt.scores.items()} == {"score": 0.5, "passed": 1.0}
    assert attempt.reward is None


def test_the_opinion_of_a_resolver_is_no_reward(tmp_path: Path) -> None:
    issue = {"owner": "o", "repo": "r", "number": 7, "title": "T", "body": "B"}
    value = {"issue": issue, "git_patch": "p", "history": history(), "success": True, "metrics": None}
    attempt = one(tmp_path, value)
    assert (attempt.task_id, attempt.scores, attempt.question) == ("o/r#7", {}, "Mend 0.")
    assert attempt.metadata == {"success_in_its_own_opinion": True}


def test_pairs_of_action_and_observation_are_read(tmp_path: Path) -> None:
    pairs = [[act(1, "run", command="ls"), saw(2, 1, content="a", **code(0))], [act(3, "finish"), None]]
    assert [s.success for s in one(tmp_path, row(history=pairs)).trajectory.steps] == [True]


def test_a_command_that_still_runs_is_neither_success_nor_failure(tmp_path: Path) -> None:
    events = [act(1, "run"), saw(2, 1, content="...", extras={"metadata": {"exit_code": -1}}, success=False)]
    assert one(tmp_path, row(history=events)).trajectory.steps[0].success is None


def test_an_empty_output_is_a_success_unless_the_command_still_runs(tmp_path: Path) -> None:
    events = [act(1, "run"), saw(2, 1, content="", extras={"metadata": {"exit_code": -1}})]
    events += [act(3, "edit"), saw(4, 3, "edit", "")]
    steps = one(tmp_path, row(history=events)).trajectory.steps
    assert [(s.output, s.success, s.told_by) for s in steps] == [("", None, ""), ("", True, "text")]


def test_an_error_that_answers_no_action_is_an_orphan_and_what_a_person_ran_is_none(tmp_path: Path) -> None:
    ran = {
        "id": 5,
        "source": "user",
        "action": "run",
        "args": {"command": "ls"},
        "message": "Running command: ls",
    }
    events = [
        act(1, "run"),
        saw(2, 1, "error", "bad call"),
        saw(3, None, "error", "no such"),
        ran,
        saw(6, 5, content="a"),
    ]
    attempt = one(tmp_path, row(history=events))
    assert [(s.success, s.told_by) for s in attempt.trajectory.steps] == [(False, "flag")]
    assert attempt.orphans == 1
    assert [(m.role, m.content) for m in attempt.trajectory.messages[-2:]] == [
        ("user", "Running command: ls"),
        ("user", "a"),
    ]


def test_the_same_output_with_verdicts_is_read_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(row()))
    graded = tmp_path / "output.swebench_eval.jsonl"
    graded.write_text(json.dumps(row(report={"resolved": True})))
    assert [type(f).__name__ for f in read(FORM, path)] == ["Remark"]
    assert [a.scores["resolved"].value for a in attempts_of(FORM, graded)] == [1.0]


def test_the_number_of_an_attempt_is_the_repeat(tmp_path: Path) -> None:
    about = {"llm": {"model": "maker-2"}, "dataset": "princeton/own"}
    attempt = one(tmp_path, row("other", attempt=2, metadata=about, history=sdk_events()))
    assert (attempt.repeat, attempt.model, attempt.namespace) == (2, "maker-2", "own")
    assert len(attempt.trajectory.steps) == 3


@pytest.mark.parametrize("layout", ["list", "lines", "export"])
def test_events_of_version_0_are_one_attempt(tmp_path: Path, layout: str) -> None:
    texts = {
        "list": json.dumps(history(), indent=1),
        "lines": "\n".join(json.dumps(e) for e in history()),
        "export": json.dumps({"trajectory": history()}),
    }
    path = tmp_path / "events.json"
    path.write_text(texts[layout])
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    assert (attempt.question, len(attempt.trajectory.steps), attempt.trajectory.answer) == (
        "Mend 0.",
        4,
        "Done.",
    )


def test_events_of_the_sdk_are_one_attempt(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(json.dumps(e) for e in sdk_events()))
    assert FORM.recognises(opened(path))
    (attempt,) = attempts_of(FORM, path)
    assert [(s.tool, s.parameters, s.turn, s.success, s.told_by) for s in attempt.trajectory.steps] == [
        ("terminal", {"command": "make"}, 0, False, "exit code"),
        ("terminal", {"command": "ls"}, 0, True, "exit code"),
        ("terminal", {"command": "x"}, 1, False, "flag"),
    ]
    assert (attempt.question, attempt.system, attempt.model) == ("Mend it.", "Rules.", "maker-1")
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("Done.", "stop")
    assert (attempt.usage.calls, attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (3, 90, 9)
    assert (attempt.scores, attempt.error, attempt.orphans) == ({}, None, 0)


def test_events_in_files_of_their_own_are_read_with_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    for number, event in enumerate(sdk_events()):
        (folder / f"event-{number:05}-x.json").write_text(json.dumps(event))
    (tmp_path / "base_state.json").write_text(
        json.dumps({"id": "c-1", "agent": {"llm": {"model": "maker-3"}}})
    )
    first, *others = sorted(folder.iterdir())
    file = Opened(first, root=tmp_path)
    (attempt,) = [f for f in FORM.read(file) if isinstance(f, Attempt)]
    assert (attempt.own_id, attempt.model, len(attempt.trajectory.steps)) == ("c-1", "maker-3", 3)
    assert set(others) < file.used
    told = {r for path in others for r in remarks_of(FORM, path)}
    assert told == {f"Events that stand in files of their own are read with the first of them, {first.name}."}
    assert [a for path in others for a in attempts_of(FORM, path)] == []


def test_what_broke_a_conversation_off_is_an_error_and_a_limit_is_none(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    values = {}
    for kind in ("LLMAuthenticationError", "MaxIterationsReached"):
        ended = {
            "id": "z",
            "source": "environment",
            "kind": "ConversationErrorEvent",
            "code": kind,
            "detail": "why",
        }
        path.write_text("\n".join(json.dumps(e) for e in [*sdk_events(), ended]))
        values[kind] = attempts_of(FORM, path)[0].error
    assert values == {"LLMAuthenticationError": "LLMAuthenticationError: why", "MaxIterationsReached": None}


def test_kinds_of_events_that_are_not_known_are_told(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(
        "\n".join(json.dumps(e) for e in [*sdk_events(), {"id": 1, "source": "agent", "kind": "NewEvent"}])
    )
    assert remarks_of(FORM, path) == ["Events of unknown kinds were left out: NewEvent."]


def test_a_bad_line_is_set_aside_and_a_list_that_is_cut_off_refused(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text("\n".join([json.dumps(row()), "{oops", json.dumps({"history": []}), json.dumps(row())]))
    assert [a.place for a in asides_of(FORM, path)] == ["line 2", "line 3"]
    assert len(attempts_of(FORM, path)) == 2
    path.write_text(json.dumps(history(), indent=1)[:-20])
    with pytest.raises(InputError, match="cut off"):
        read(FORM, path)


def test_rows_of_more_than_a_megabyte_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    long = row(history=[*history(), saw(20, 12, content="x" * 1_500_000)])
    path.write_text("\n".join(json.dumps(long) for _ in range(2)))
    assert FORM.recognises(opened(path))
    assert [a.place for a in attempts_of(FORM, path)] == ["line 1", "line 2"]


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    small = row(
        history=[act(1, "run", "r1", command="x"), saw(2, 1, **code(0)), act(3, "finish", outputs={})]
    )
    rows = [row(), *mutations(small | {"report": {"resolved": True}})]
    for number in (2, 4, 6, 8):
        rows += [row(history=[*sdk_events()[:2], event]) for event in mutations(sdk_events()[number])]
    assert sum(read_lines(FORM, tmp_path / "output.jsonl", rows)) == len(rows)
