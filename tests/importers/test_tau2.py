"""Results of tau2-bench become attempts: one file or a folder, text or voice; the user's tools are no steps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.importers import json_stream
from core.importers.attempt import Attempt, Remark
from core.importers.formats import FORMATS
from core.importers.formats.tau2 import Tau2
from core.importers.opened import Opened
from tests.importers.make_tau2 import POLICY, info, make, simulation, task, write, write_folder
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import as_stored, mutations

TAU2 = Tau2()


def written(folder: Path, *simulations: Any, **changes: Any) -> Path:
    return write(folder / "results.json", list(simulations), **changes)


def only(path: Path) -> Attempt:
    (attempt,) = attempts_of(TAU2, path)
    return attempt


def test_a_file_comes_in_as_a_person_counts_it(tmp_path: Path) -> None:
    counts = make(tmp_path / "results.json")
    assert counted(read(TAU2, tmp_path / "results.json")) == counts
    assert (counts.attempts, counts.tasks) == (12, 3)
    assert (counts.scored, counts.unscored, counts.errors) == (6, 3, 3)
    assert (counts.steps, counts.succeeded, counts.failed) == (12, 9, 3)
    assert (counts.prompt_tokens, counts.completion_tokens) == (1200, 144)


def test_a_file_is_known_by_its_content_however_large_its_tasks_are(tmp_path: Path) -> None:
    tasks = [task(str(n)) | {"notes": "x" * 700_000} for n in range(3)]
    path = written(tmp_path, simulation("0", 0), tasks=tasks).rename(tmp_path / "data.bin")
    assert next(f for f in FORMATS if f.recognises(opened(path))).name == "tau2"


def test_a_simulation_becomes_an_attempt(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, simulation("17", 2)))
    assert (attempt.namespace, attempt.task_id, attempt.repeat) == ("tau2 telecom", "17", 2)
    assert (
        attempt.question
        == "Reason for call: Line 17 is dead.\nKnown info: You are Ana.\nTask instructions: Be brief."
    )
    assert attempt.system == POLICY
    assert attempt.task_metadata["evaluation_criteria"] == task("17")["evaluation_criteria"]
    assert attempt.model == "maker/model-1"
    assert attempt.agent == "llm_agent, temperature 0.5, user user-model-1"
    assert attempt.own_id == "uuid-17-2"
    assert attempt.reward == "reward"
    assert {name: seen.value for name, seen in attempt.scores.items()} == {
        "reward": 1.0,
        "reward_breakdown.DB": 1.0,
        "reward_breakdown.COMMUNICATE": 1.0,
    }
    assert (attempt.trajectory.answer, attempt.trajectory.finish_reason) == ("Line 17 works again.", "stop")
    assert (attempt.usage.calls, attempt.usage.cost_usd, attempt.duration_s) == (3, 0.01, 12.5)
    assert (attempt.metadata["user_cost"], attempt.metadata["seed"]) == (0.02, 7)


def test_only_the_agents_calls_are_steps_though_the_users_have_the_same_id(tmp_path: Path) -> None:
    path = written(tmp_path, simulation("1", 0))
    (step,) = only(path).trajectory.steps
    assert (step.tool, step.parameters, step.output, step.success) == (
        "reset_line",
        {"line": "1"},
        "done",
        True,
    )
    assert only(path).orphans == 0
    users = [m.content for m in only(path).trajectory.messages if m.role == "user"]
    assert users[1:3] == ["[the user calls check_status with {}]", "[the user's tool: OK]"]
    assert remarks_of(TAU2, path) == [
        "Tools that the simulated user of tau2 called are told in its messages; they are no steps."
    ]


def test_a_tools_error_is_a_flag(tmp_path: Path) -> None:
    (step,) = only(written(tmp_path, simulation("1", 0, fails=True))).trajectory.steps
    assert (step.success, step.error, step.told_by) == (False, "Error: busy", "flag")


def test_results_of_several_tools_may_stand_in_one_message(tmp_path: Path) -> None:
    made = simulation("1", 0)
    calls = [{"id": f"c{n}", "name": "look", "arguments": {"n": n}, "requestor": "assistant"} for n in (1, 2)]
    parts = [{"id": f"c{n}", "role": "tool", "content": str(n), "requestor": "assistant"} for n in (1, 2)]
    made["messages"][2]["tool_calls"] = calls
    made["messages"][3] = {"role": "tool", "tool_messages": parts}
    steps = only(written(tmp_path, made)).trajectory.steps
    assert [(s.parameters, s.output, s.turn) for s in steps] == [({"n": 1}, "1", 1), ({"n": 2}, "2", 1)]


@pytest.mark.parametrize("ended", ["infrastructure_error", "unexpected_error", "context_window_exceeded"])
def test_what_tau2_does_not_evaluate_is_an_error(tmp_path: Path, ended: str) -> None:
    attempt = only(written(tmp_path, simulation("1", 0, 0.0, ended=ended, info={"error": "no route"})))
    assert attempt.error == f"{ended.replace('_', ' ')}: no route"


@pytest.mark.parametrize("ended", ["agent_error", "user_error", "max_steps", "too_many_errors", "timeout"])
def test_another_premature_end_is_graded_and_marked(tmp_path: Path, ended: str) -> None:
    attempt = only(written(tmp_path, simulation("1", 0, 0.0, ended=ended)))
    assert (attempt.error, attempt.scores["reward"].value) == (None, 0.0)
    assert (attempt.metadata["premature"], attempt.metadata["termination_reason"]) == (True, ended)


def test_without_reward_info_an_attempt_is_ungraded(tmp_path: Path) -> None:
    attempt = only(written(tmp_path, simulation("1", 0, None)))
    assert (attempt.scores, attempt.error) == ({}, None)


@pytest.mark.parametrize(
    ("made", "question"),
    [
        (
            {"user_scenario": {"persona": "You are old.", "instructions": "Call."}},
            "Persona: You are old.\nCall.",
        ),
        ({"user_scenario": {}, "ticket": "Line 1 is dead."}, "Line 1 is dead."),
        ({}, "Task 1 of tau2 telecom"),
    ],
)
def test_the_question_is_what_the_user_wants(tmp_path: Path, made: dict[str, Any], question: str) -> None:
    assert only(written(tmp_path, simulation("1", 0), tasks=[{"id": "1"} | made])).question == question


def test_the_tasks_may_follow_the_simulations(tmp_path: Path) -> None:
    data = {"simulations": [simulation("1", 0)], "tasks": [task("1")], "info": info()}
    (tmp_path / "results.json").write_text(json.dumps(data))
    attempt = only(tmp_path / "results.json")
    assert (attempt.model, attempt.question[:15]) == ("maker/model-1", "Reason for call")


def test_a_folder_has_an_attempt_in_each_file_of_simulations(tmp_path: Path) -> None:
    files = write_folder(
        tmp_path / "run-1", [simulation("1", 0), simulation("1", 1, 0.0), simulation("2", 0)]
    )
    of_folder = [Opened(f, f"run-1/simulations/{f.name}", tmp_path) for f in files]
    assert all(TAU2.recognises(o) for o in of_folder)
    attempts = [f for o in of_folder for f in TAU2.read(o) if isinstance(f, Attempt)]
    assert [(a.task_id, a.repeat, a.model) for a in attempts] == [
        ("1", 0, "maker/model-1"),
        ("1", 1, "maker/model-1"),
        ("2", 0, "maker/model-1"),
    ]
    assert len({a.question for a in attempts}) == 2
    assert of_folder[0].used == {(tmp_path / "run-1" / "results.json").resolve()}


def test_the_results_of_a_folder_alone_say_where_the_attempts_are(tmp_path: Path) -> None:
    write_folder(tmp_path / "run-1", [simulation("1", 0)])
    results = tmp_path / "run-1" / "results.json"
    assert TAU2.recognises(opened(results))
    assert attempts_of(TAU2, results) == []
    assert "they are in the folder 'simulations' beside it" in remarks_of(TAU2, results)[0]


def test_a_simulation_alone_says_what_is_missing(tmp_path: Path) -> None:
    (file,) = write_folder(tmp_path, [simulation("1", 0)])
    assert (only(file).model, only(file).scores["reward"].value) == ("", 1.0)
    assert remarks_of(TAU2, file)[0].startswith(
        "A simulation without its results.json tells neither model nor task"
    )


def test_damaged_results_above_a_simulation_are_told_and_what_came_before_stands(tmp_path: Path) -> None:
    (file,) = write_folder(tmp_path / "run-1", [simulation("1", 0)])
    results = tmp_path / "run-1" / "results.json"
    results.write_bytes(results.read_bytes()[:-40])
    found = list(TAU2.read(Opened(file, file.name, tmp_path)))
    assert [f.task_id for f in found if isinstance(f, Attempt)] == ["1"]
    told = [f.text for f in found if isinstance(f, Remark)]
    assert told[0].startswith("The results.json above the simulations is damaged (")


def test_results_that_were_written_anew_are_read_anew(tmp_path: Path) -> None:
    (file,) = write_folder(tmp_path, [simulation("1", 0)])
    results = tmp_path / "results.json"
    models = []
    for model in ("model-1", "model-22"):
        data = json.loads(results.read_text())
        data["info"]["agent_info"]["llm"] = model
        results.write_text(json.dumps(data))
        found = list(TAU2.read(Opened(file, "simulations/a.json", tmp_path)))
        models += [f.model for f in found if isinstance(f, Attempt)]
    assert models == ["model-1", "model-22"]


def voice() -> dict[str, Any]:
    """A call in ticks: both say something in pieces, and the agent calls a tool."""

    def chunk(role: str, content: str | None, utterance: str = "u1") -> dict[str, Any]:
        return {"role": role, "content": content, "is_audio": False, "utterance_ids": [utterance]}

    call = {"id": "c1", "name": "reset_line", "arguments": {"line": "1"}, "requestor": "assistant"}
    result = {"id": "c1", "role": "tool", "content": "done", "requestor": "assistant", "error": False}
    ticks: list[dict[str, Any]] = [
        {"user_chunk": chunk("user", "My line "), "agent_chunk": chunk("assistant", None)},
        {"user_chunk": chunk("user", "is dead."), "agent_chunk": chunk("assistant", None)},
        {"user_chunk": chunk("user", "Hello?", "u2"), "agent_chunk": {}},
        {"agent_chunk": {}, "agent_tool_calls": [call]},
        {"agent_tool_results": [result]},
        {"agent_chunk": chunk("assistant", "It works"), "user_chunk": {"content": "AAAA", "is_audio": True}},
        {"agent_chunk": chunk("assistant", " again.")},
    ]
    made = simulation("1", 0, ticks=ticks, mode="full_duplex", agent_cost=None)
    made["agent_usage"] = {
        "records": [{"input_tokens": 70, "output_tokens": 8}, {"input_tokens": 9, "billable": False}]
    }
    del made["messages"]
    return made


def test_a_voice_call_becomes_turns_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, voice())
    attempt = only(path)
    assert [(m.role, m.content) for m in attempt.trajectory.messages] == [
        ("user", "My line is dead. Hello?"),
        ("assistant", '[calls reset_line with {"line": "1"}]'),
        ("tool", "done"),
        ("assistant", "It works again."),
    ]
    assert [s.success for s in attempt.trajectory.steps] == [True]
    assert (attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (70, 8)
    assert remarks_of(TAU2, path) == [
        "Of voice simulations of tau2 only the words and the calls of tools were read; "
        "sound, timing and turn-taking are left out."
    ]


def test_ticks_of_any_number_are_never_all_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = voice()
    made["ticks"] += [{"user_chunk": {"turn_taking_action": {"info": "x" * 900}}} for _ in range(200)]
    path = written(tmp_path, made)
    monkeypatch.setattr(json_stream, "MAX_VALUE", 20_000)
    monkeypatch.setattr(json_stream, "CHUNK", 4_000)
    assert only(path).trajectory.answer == "It works again."


# What may be wrong with a file


def test_a_file_that_is_cut_off_gives_what_came_before_and_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, *(simulation(str(n), 0) for n in range(4)))
    path.write_bytes(path.read_bytes()[:-500])
    assert [a.task_id for a in attempts_of(TAU2, path)] == ["0", "1", "2"]
    assert [(a.place, a.reason) for a in asides_of(TAU2, path)] == [
        ("simulation 4", "its JSON is cut off: it ends in the middle; nothing after it was read")
    ]


def test_a_bad_simulation_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, simulation("0", 0), "garbage", {"id": "x"}, None, simulation("2", 0))
    assert [a.task_id for a in attempts_of(TAU2, path)] == ["0", "2"]
    assert [a.place for a in asides_of(TAU2, path)] == ["simulation 2", "simulation 3", "simulation 4"]


def test_a_damaged_simulation_of_a_folder_is_set_aside(tmp_path: Path) -> None:
    (file,) = write_folder(tmp_path, [simulation("1", 0)])
    file.write_bytes(file.read_bytes()[:-40])
    assert TAU2.recognises(opened(file))
    assert [a.reason for a in asides_of(TAU2, file)] == ["its JSON is cut off: it ends in the middle"]


def test_a_simulation_in_another_encoding_is_set_aside(tmp_path: Path) -> None:
    odd = simulation("1", 0)
    odd["messages"][1]["content"] = "Zürich"
    data = {"info": info(), "tasks": [], "simulations": [odd, simulation("2", 0)]}
    (tmp_path / "results.json").write_bytes(json.dumps(data, ensure_ascii=False).encode("latin-1"))
    assert [a.task_id for a in attempts_of(TAU2, tmp_path / "results.json")] == ["2"]
    (aside,) = asides_of(TAU2, tmp_path / "results.json")
    assert (aside.place, aside.reason) == ("simulation 1", "bytes of it are not UTF-8")


def test_a_file_in_gzip_is_the_same_file(tmp_path: Path) -> None:
    counts = make(tmp_path / "r.json")
    (tmp_path / "r.json").write_bytes(gzip.compress((tmp_path / "r.json").read_bytes()))
    assert TAU2.recognises(opened(tmp_path / "r.json"))
    assert counted(read(TAU2, tmp_path / "r.json")) == counts


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"info": {}, "tasks": []}', b"\xff\xfe", b'{"id": 1']
)
def test_other_files_are_not_taken_for_results(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert not TAU2.recognises(opened(tmp_path / "a"))


@pytest.mark.parametrize("plain", [simulation("1", 0), voice()], ids=["text", "voice"])
def test_a_value_of_any_type_in_any_place_is_no_traceback(tmp_path: Path, plain: dict[str, Any]) -> None:
    path = written(tmp_path, *(changed := list(mutations(plain))))
    found = attempts_of(TAU2, path)
    assert len(found) + len(asides_of(TAU2, path)) == len(changed) > 500
    assert all(a.question for a in found)
    assert as_stored(found) == found


def test_a_value_of_any_type_in_any_place_of_the_results_is_no_traceback(tmp_path: Path) -> None:
    for head in mutations({"info": info(), "tasks": [task("1")]}):
        (attempt,) = attempts_of(TAU2, written(tmp_path, simulation("1", 0), **head))
        assert as_stored([attempt]) == [attempt]
