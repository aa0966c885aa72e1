"""ATIF trajectories are read as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers.attempt import Attempt
from core.importers.formats.atif import Atif
from core.importers.opened import Opened
from tests.importers.make_atif import call, make, metrics, step, trajectory
from tests.importers.make_harbor import make_job
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import mutations, read_lines

FORM = Atif()


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))
    return path


def one(folder: Path, **changes: Any) -> Attempt:
    (attempt,) = attempts_of(FORM, write(folder / "trajectory.json", trajectory() | changes))
    return attempt


def acting(*calls: dict[str, Any], results: list[Any]) -> list[dict[str, Any]]:
    return [
        step(1, "user", "Go."),
        step(2, "agent", "Act.", tool_calls=list(calls), observation={"results": results}),
    ]


def test_the_counts_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "collected.jsonl"
    told = make(path, 12)
    assert FORM.recognises(opened(path))
    assert counted(read(FORM, path)) == told
    assert (told.attempts, told.tasks, told.steps, told.failed, told.prompt_tokens) == (12, 3, 24, 12, 2640)


def test_a_trajectory_is_told_whole(tmp_path: Path) -> None:
    attempt = one(tmp_path)
    assert (attempt.question, attempt.system, attempt.model, attempt.agent) == (
        "Make file 0.",
        "Be careful.",
        "maker-1",
        "mini 1.0",
    )
    assert [(s.tool, s.turn, s.success, s.told_by) for s in attempt.trajectory.steps] == [
        ("bash", 0, False, "text"),
        ("bash", 0, None, ""),
    ]
    assert (attempt.trajectory.answer, attempt.scores, attempt.reward, attempt.duration_s) == (
        "Done.",
        {},
        None,
        3.0,
    )
    assert (attempt.usage.calls, attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (2, 220, 15)
    assert attempt.usage.cost_usd == pytest.approx(0.02)


def test_a_session_is_told_by_its_id_only_where_that_is_unique_for_good(tmp_path: Path) -> None:
    known = "0b1e6f0a-3f7e-4c1c-9a55-0123456789ab"
    assert one(tmp_path).own_id is None
    assert one(tmp_path, session_id=known).own_id == known
    assert one(tmp_path, session_id=known, trajectory_id=known[::-1].upper()).own_id == known


def test_a_result_without_the_id_of_its_call_belongs_to_the_call_in_its_place(tmp_path: Path) -> None:
    steps = acting(call("a"), call("b"), results=[{"content": "first"}, {"content": "second"}])
    assert [s.output for s in one(tmp_path, steps=steps).trajectory.steps] == ["first", "second"]


def test_the_only_result_of_several_calls_is_that_of_the_last_that_did_something(tmp_path: Path) -> None:
    calls = [call("a"), call("b"), call("c", "mark_task_complete")]
    attempt = one(tmp_path, steps=acting(*calls, results=[{"content": "the screen"}]))
    assert [(s.output, s.success) for s in attempt.trajectory.steps] == [
        ("", None),
        ("the screen", None),
        ("", None),
    ]
    assert attempt.orphans == 0


def test_a_result_without_content_is_none_and_one_without_a_call_is_an_orphan(tmp_path: Path) -> None:
    results = [{"source_call_id": "a"}, {"source_call_id": "zz", "content": "whose?"}]
    attempt = one(tmp_path, steps=acting(call("a"), results=results))
    assert [(s.output, s.success) for s in attempt.trajectory.steps] == [("", None)]
    assert (attempt.orphans, attempt.trajectory.messages[-1].content) == (1, "whose?")


def test_what_writers_say_of_errors_beyond_the_format_is_read(tmp_path: Path) -> None:
    result = {"source_call_id": "a", "content": "x"}
    told = {}
    for name, extra, of_step in (
        ("flag", {"is_error": True}, {}),
        ("code", {"exit_code": 1}, {}),
        ("step", {}, {"tool_result_is_error": True}),
        ("well", {"is_error": False}, {}),
    ):
        steps = acting(call("a"), results=[result | {"extra": extra}])
        steps[1]["extra"] = of_step
        (done,) = one(tmp_path, steps=steps).trajectory.steps
        told[name] = (done.success, done.told_by)
        steps[1]["observation"]["results"][0].pop("content")  # a mark says what came of it, without a word
        (done,) = one(tmp_path, steps=steps).trajectory.steps
        assert (done.success, done.told_by) == told[name]
    assert told == {
        "flag": (False, "flag"),
        "code": (False, "exit code"),
        "step": (False, "flag"),
        "well": (True, "flag"),
    }


def test_an_empty_content_is_a_result(tmp_path: Path) -> None:
    results = [{"source_call_id": "a", "content": ""}]
    (done,) = one(tmp_path, steps=acting(call("a"), results=results)).trajectory.steps
    assert (done.output, done.success, done.told_by) == ("", True, "text")


def test_what_the_environment_says_without_a_call_is_a_message_and_no_orphan(tmp_path: Path) -> None:
    attempt = one(tmp_path, steps=acting(results=[{"content": "a screen"}]))
    assert (attempt.orphans, attempt.trajectory.messages[-1].content, attempt.trajectory.steps) == (
        0,
        "a screen",
        (),
    )


def test_commands_that_terminus_asks_for_in_json_are_calls(tmp_path: Path) -> None:
    asked = {"analysis": "", "commands": [{"keystrokes": "ls\n", "duration": 0.1}, {"keystrokes": "pwd\n"}]}
    screens = ["Rules.\n\nTask Description:\nMake it.\nAll of it.\n\nCurrent terminal state:\nroot@1a2b", "x"]
    steps = [
        step(1, "user", screens[0]),
        step(2, "agent", json.dumps(asked), observation={"results": [{"content": "screen"}]}),
        step(3, "agent", "no JSON", observation={"results": [{"content": "screen"}]}),
    ]
    attempt = one(tmp_path, steps=steps, agent={"name": "terminus-2", "version": "2"})
    assert attempt.question == "Make it.\nAll of it."
    assert [(s.tool, s.parameters, s.output) for s in attempt.trajectory.steps] == [
        ("bash_command", {"keystrokes": "ls\n", "duration": 0.1}, ""),
        ("bash_command", {"keystrokes": "pwd\n"}, "screen"),
    ]


def test_continuations_are_read_with_their_beginning_and_copies_are_counted_once(tmp_path: Path) -> None:
    first = trajectory() | {"continued_trajectory_ref": "trajectory.cont-1.json"}
    copied = [s | {"is_copied_context": True} for s in first["steps"]]
    second = trajectory() | {"steps": [*copied, step(5, "agent", "More.", metrics=metrics(7, 3))]}
    path = write(tmp_path / "trajectory.json", first)
    rest = write(tmp_path / "trajectory.cont-1.json", second)
    (attempt,) = attempts_of(FORM, path)
    assert [m.content for m in attempt.trajectory.messages][-2:] == ["Done.", "More."]
    assert (len(attempt.trajectory.steps), attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (
        2,
        227,
        18,
    )
    assert attempts_of(FORM, rest) == []
    assert remarks_of(FORM, rest) == [
        "Trajectories that belong to a trial or continue another one were read with it."
    ]


def test_a_continuation_that_is_not_there_is_told_and_one_that_goes_in_circles_ends(tmp_path: Path) -> None:
    path = write(
        tmp_path / "trajectory.json", trajectory() | {"continued_trajectory_ref": "trajectory.cont-1.json"}
    )
    told = "The continuation 'trajectory.cont-1.json' of a trajectory is not there: its end is missing."
    assert remarks_of(FORM, path) == [told]
    write(tmp_path / "trajectory.cont-1.json", trajectory() | {"continued_trajectory_ref": "trajectory.json"})
    assert len(attempts_of(FORM, path)) == 1


def test_a_continuation_that_no_file_can_be_named_after_is_not_there(tmp_path: Path) -> None:
    for ref in ("x" * 5_000, "\x00", "../" * 40 + "etc/passwd"):
        path = write(tmp_path / "trajectory.json", trajectory() | {"continued_trajectory_ref": ref})
        assert [r.startswith("The continuation ") for r in remarks_of(FORM, path)] == [True]


def test_sub_agents_are_no_attempts(tmp_path: Path) -> None:
    refs = [{"session_id": "s", "trajectory_path": "trajectory.summary.json"}]
    steps = [
        step(1, "user", "Go."),
        step(2, "system", "Handoff.", observation={"results": [{"subagent_trajectory_ref": refs}]}),
    ]
    path = write(
        tmp_path / "trajectory.json", trajectory() | {"steps": steps, "subagent_trajectories": [trajectory()]}
    )
    own = write(tmp_path / "trajectory.summary.json", trajectory())
    said = write(
        tmp_path / "other.json", trajectory() | {"agent": {"name": "x", "extra": {"parent_session_id": "s"}}}
    )
    assert [a.ends for a in attempts_of(FORM, path)] == [True, False]
    assert [a.ends for a in attempts_of(FORM, own)] == [False]
    assert [a.ends for a in attempts_of(FORM, said)] == [False]


def test_the_reward_of_a_verifier_beside_it_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "build-it__aB3dE6g" / "agent" / "trajectory.json", trajectory())
    (path.parents[1] / "verifier").mkdir()
    (path.parents[1] / "verifier" / "reward.txt").write_text("0.5\n")
    (attempt,) = [f for f in FORM.read(Opened(path, root=tmp_path)) if isinstance(f, Attempt)]
    assert (attempt.task_id, attempt.scores["reward"].value, attempt.reward) == ("build-it", 0.5, "reward")
    (path.parents[1] / "verifier" / "reward.txt").write_text("oops")
    (attempt,) = [f for f in FORM.read(Opened(path, root=tmp_path)) if isinstance(f, Attempt)]
    assert attempt.scores["reward"].value is None


def test_one_that_stands_in_a_trial_is_read_with_the_trial_but_alone_it_is_read_itself(
    tmp_path: Path,
) -> None:
    path = make_job(tmp_path, 1)[0].parent / "agent" / "trajectory.json"
    assert [type(f).__name__ for f in FORM.read(Opened(path, root=tmp_path))] == ["Remark"]
    assert (
        len(attempts_of(FORM, path)) == 1
    )  # only the file itself was named: nothing outside its folder is read


def test_totals_are_taken_only_where_the_steps_tell_nothing(tmp_path: Path) -> None:
    steps = [step(1, "user", "Go."), step(2, "agent", "Done.")]
    usage = one(tmp_path, steps=steps).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 220, 15)


def test_the_model_may_stand_in_the_steps_alone(tmp_path: Path) -> None:
    steps = [step(1, "user", "Go."), step(2, "agent", "Done.", model_name="maker-2")]
    assert one(tmp_path, steps=steps, agent={"name": "x", "model_name": None}).model == "maker-2"


def test_pictures_are_marks(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
    ]
    assert one(tmp_path, steps=[step(1, "user", parts)]).question == "Look.\n[image a.png]"


def test_a_file_that_is_cut_off_is_refused_and_a_bad_line_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path / "trajectory.json", trajectory())
    path.write_text(path.read_text()[:-30])
    with pytest.raises(InputError, match="cut off"):
        read(FORM, path)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join([json.dumps(trajectory()), "{oops", '{"a": 1}', json.dumps(trajectory())]))
    assert [a.place for a in asides_of(FORM, lines)] == ["line 2", "line 3"]
    assert len(attempts_of(FORM, lines)) == 2


def test_a_member_of_any_type_breaks_nothing(tmp_path: Path) -> None:
    whole = trajectory() | {"continued_trajectory_ref": "x", "subagent_trajectories": [{"steps": []}]}
    told = [trajectory(), *mutations(whole)]
    assert sum(read_lines(FORM, tmp_path / "trajectory.jsonl", told)) >= len(told)
