"""Results of the Berkeley Function-Calling Leaderboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.importers.formats.bfcl import Bfcl
from core.importers.opened import Opened
from tests.importers.make_bfcl import failure, line, make, several_turns
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of

FORM = Bfcl()
SUMMARY = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}


def _write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _results(tmp_path: Path, *rows: Any) -> Path:
    return _write(tmp_path / "BFCL_v4_simple_result.json", *rows)


def test_a_file_counts_as_a_person_counts_it(tmp_path: Path) -> None:
    counts = make(tmp_path / "r.json")
    assert FORM.recognises(opened(tmp_path / "r.json"))
    assert counted(read(FORM, tmp_path / "r.json")) == counts
    assert remarks_of(FORM, tmp_path / "r.json") == [
        "There is no score file beside the results: nothing is graded."
    ]


def test_what_the_score_file_does_not_list_is_right(tmp_path: Path) -> None:
    _write(tmp_path / "BFCL_v4_simple_score.json", SUMMARY, failure(1))
    path = _results(tmp_path, line(0), line(1))
    assert [(a.scores["valid"].value, a.metadata.get("failure")) for a in attempts_of(FORM, path)] == [
        (1.0, None),
        (0.0, "value_error:others"),
    ]
    assert remarks_of(FORM, path) == []


def test_the_score_file_is_found_in_its_own_tree_and_the_folder_names_the_model(tmp_path: Path) -> None:
    path = _write(tmp_path / "result" / "small-FC" / "live" / "BFCL_v4_simple_result.json", line(0), line(1))
    _write(tmp_path / "score" / "small-FC" / "live" / "BFCL_v4_simple_score.json", SUMMARY, failure(0))
    found = list(FORM.read(Opened(path, root=tmp_path)))
    assert counted(found).scored == 2
    assert [a.model for a in attempts_of(FORM, path)] == ["small-FC", "small-FC"]


def test_a_score_file_of_another_number_of_results_is_told(tmp_path: Path) -> None:
    _write(tmp_path / "BFCL_v4_simple_score.json", SUMMARY, failure(1))
    [remark] = remarks_of(FORM, _results(tmp_path, line(0)))
    assert remark.startswith("The score file counts 2 results and the file holds 1")


def test_what_a_score_file_of_fewer_results_does_not_list_is_ungraded(tmp_path: Path) -> None:
    _write(tmp_path / "BFCL_v4_simple_score.json", SUMMARY, failure(1))
    path = _results(tmp_path, line(0), line(1), line(2))
    assert [a.scores["valid"].value for a in attempts_of(FORM, path)] == [None, 0.0, None]
    [remark] = remarks_of(FORM, path)
    assert remark.endswith(
        "the file holds 3: what the score file does not list as failed is ungraded, for some were not scored."
    )


def test_a_result_that_was_written_twice_is_one_for_the_score_file(tmp_path: Path) -> None:
    _write(tmp_path / "BFCL_v4_simple_score.json", SUMMARY, failure(1))
    path = _results(tmp_path, line(0), line(1), line(1))
    assert [a.scores["valid"].value for a in attempts_of(FORM, path)] == [1.0, 0.0, 0.0]
    assert remarks_of(FORM, path) == []


def test_a_call_without_a_log_is_no_success(tmp_path: Path) -> None:
    [attempt] = attempts_of(FORM, _results(tmp_path, line(3)))
    assert [(s.tool, s.parameters, s.output, s.success) for s in attempt.trajectory.steps] == [
        ("triangle_area", {"base": 3, "height": 5}, "", None)
    ]
    assert attempt.question == "task simple_3"


def test_a_thought_is_kept_and_is_no_answer(tmp_path: Path) -> None:
    [attempt] = attempts_of(
        FORM, _results(tmp_path, line(0, result="It is 25.", reasoning_content="5 times 5"))
    )
    assert attempt.trajectory.messages[-1].content == "[thinks] 5 times 5\nIt is 25."
    assert attempt.trajectory.answer == "It is 25."


def test_a_log_tells_turns_steps_and_results(tmp_path: Path) -> None:
    [attempt] = attempts_of(FORM, _results(tmp_path, several_turns(4)))
    assert attempt.question == "What is in docs?\n\nAnd now?"
    assert [(s.tool, s.success, s.turn) for s in attempt.trajectory.steps] == [
        ("cd", None, 0),
        ("ls", False, 0),
        ("ls", None, 2),
    ]
    assert attempt.trajectory.steps[2].output == '{"files": ["a"]}'
    assert (attempt.usage.prompt_tokens, attempt.usage.completion_tokens, attempt.duration_s) == (
        450,
        19,
        1.75,
    )
    assert attempt.metadata == {"category": "multi_turn_base"}


def test_a_model_that_was_made_to_stop_reached_the_step_limit(tmp_path: Path) -> None:
    one = several_turns(4)
    one["inference_log"][3]["step_0"].append(
        {"role": "handler_log", "content": "Model has been forced to quit"}
    )
    [attempt] = attempts_of(FORM, _results(tmp_path, one))
    assert attempt.trajectory.finish_reason == "step limit"


def test_the_data_set_beside_the_results_tells_the_question(tmp_path: Path) -> None:
    _write(
        tmp_path / "BFCL_v4_simple.json",
        {"id": "simple_0", "question": [[{"role": "user", "content": "How large?"}]]},
    )
    [attempt] = attempts_of(FORM, _results(tmp_path, line(0)))
    assert attempt.question == "How large?"


def test_a_failed_call_of_the_model_is_an_error(tmp_path: Path) -> None:
    [attempt] = attempts_of(FORM, _results(tmp_path, line(0, result="Error during inference: rate limit")))
    assert attempt.error == "Error during inference: rate limit"


def test_any_type_anywhere_gives_an_attempt_or_is_set_aside(tmp_path: Path) -> None:
    odd: list[Any] = [None, 1, "x", [], {}, [[]], [[[[[[1]]]]]], float("nan"), [{"a": 1}, None]]
    rows = [
        {**line(0), "inference_log": None, key: value} for key in (*line(0), "inference_log") for value in odd
    ]
    rows += [{**line(0), "inference_log": [{"begin_of_turn_query": value, "step_0": value}]} for value in odd]
    path = _results(tmp_path, *rows)
    assert len(attempts_of(FORM, path)) + len(asides_of(FORM, path)) == len(rows)
