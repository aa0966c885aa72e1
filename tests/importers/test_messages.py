"""The generic format: messages and answers, read by a mapping or by the usual names."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from core.importers.attempt import Aside, Attempt, Found, Remark
from core.importers.formats import FORMATS
from core.importers.formats.messages import Messages
from core.importers.opened import Opened
from tests.importers.make_messages import line, make, messages
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of
from tests.importers.mutating import as_stored

FORM = Messages()


def _jsonl(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "rollouts.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def _csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rollouts.csv"
    path.write_bytes(text.encode())
    return path


def _mapped(path: Path, mapping: Mapping[str, Any]) -> list[Found]:
    return list(FORM.read(Opened(path, mapping=mapping)))


def _attempts(found: list[Found]) -> list[Attempt]:
    return [f for f in found if isinstance(f, Attempt)]


def test_a_file_counts_as_a_person_counts_it(tmp_path: Path) -> None:
    counts = make(tmp_path / "r.jsonl")
    assert FORM.recognises(opened(tmp_path / "r.jsonl"))
    assert counted(read(FORM, tmp_path / "r.jsonl")) == counts
    assert (counts.attempts, counts.tasks, counts.scored, counts.unscored) == (12, 3, 9, 3)
    assert (counts.steps, counts.failed) == (12, 6)


def test_it_is_tried_last_for_other_formats_have_usual_names_too() -> None:
    assert isinstance(FORMATS[-1], Messages)


def test_what_was_found_by_its_usual_name_is_told_as_a_guess(tmp_path: Path) -> None:
    [remark] = remarks_of(FORM, _jsonl(tmp_path, line(1, 0, 1.0)))
    assert remark == (
        "Which columns hold what is a guess by their names: messages = messages; task_id = task_id; attempt = trial; "
        "model = model; score = reward. A mapping says otherwise."
    )


def test_a_guess_never_says_which_score_is_the_reward(tmp_path: Path) -> None:
    [attempt] = attempts_of(FORM, _jsonl(tmp_path, {**line(1, 0, 1.0), "accuracy": 0.5}))
    assert {name: seen.value for name, seen in attempt.scores.items()} == {"reward": 1.0, "accuracy": 0.5}
    assert attempt.reward is None


def test_messages_give_question_system_steps_and_answer(tmp_path: Path) -> None:
    [attempt] = attempts_of(FORM, _jsonl(tmp_path, line(1, 0, 1.0)))
    assert (attempt.question, attempt.system) == ("Which seats of flight 1 are free?", "Help the passenger.")
    assert [(s.tool, s.parameters, s.output) for s in attempt.trajectory.steps] == [
        ("seats", {"flight": 1}, "4A, 4B")
    ]
    assert (attempt.trajectory.answer, attempt.repeat, attempt.model) == ("Attempt 0: 4A and 4B.", 0, "small")


def test_a_mapping_says_where_everything_stands(tmp_path: Path) -> None:
    record = {
        "meta": {"key": "t-7", "try": 2, "set": "seats"},
        "log": {"turns": messages(7, 0)},
        "grades": {"exact": 0.25},
        "gold": "4A",
        "used": {"input_tokens": 10, "output_tokens": 3},
        "seconds": 1.5,
        "note": "kept",
    }
    mapping = {
        "task_id": "meta.key",
        "attempt": "meta.try",
        "namespace": "meta.set",
        "messages": "log.turns",
        "reward": "grades.exact",
        "answer": "gold",
        "usage": "used",
        "duration_s": "seconds",
        "model": {"value": "gpt-x"},
        "agent": {"value": "plain"},
    }
    path = _jsonl(tmp_path, record)
    assert FORM.recognises(Opened(path, mapping=mapping))
    [attempt] = _attempts(_mapped(path, mapping))
    assert (attempt.task_id, attempt.repeat, attempt.namespace, attempt.expected) == ("t-7", 2, "seats", "4A")
    assert (attempt.model, attempt.agent, attempt.duration_s) == ("gpt-x", "plain", 1.5)
    assert (attempt.scores["grades.exact"].value, attempt.reward) == (0.25, "grades.exact")
    assert (attempt.usage.prompt_tokens, attempt.usage.completion_tokens) == (10, 3)
    assert attempt.metadata == {"note": "kept"}


def test_of_several_rewards_in_the_mapping_none_is_chosen(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, {**line(1, 0, 1.0), "style": "50%"})
    [attempt] = _attempts(
        _mapped(path, {"messages": "messages", "reward": {"exact": "reward", "style": "style"}})
    )
    assert {name: seen.value for name, seen in attempt.scores.items()} == {"exact": 1.0, "style": 0.5}
    assert attempt.reward is None


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        ({"message": "m"}, "The mapping has no key 'message'; its keys are: messages, question,"),
        ({"messages": 3}, "The mapping's 'messages' must name a column or a path such as info.task.id."),
        ({"messages": "m", "reward": [1]}, "The mapping's 'reward' must name a column"),
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(
    tmp_path: Path, mapping: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        _mapped(_jsonl(tmp_path, line(1, 0, 1.0)), mapping)
    assert str(refused.value).startswith(sentence)


def test_a_name_in_the_mapping_that_no_record_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        _mapped(_jsonl(tmp_path, line(1, 0, 1.0)), {"messages": "messages", "reward": "grade"})
    assert "the mapping says that reward stands in 'grade', but no record has it; name another" in str(
        refused.value
    )


def test_a_name_in_the_mapping_that_stands_late_or_holds_nothing_is_there(tmp_path: Path) -> None:
    lines = [line(i, 0, 1.0) for i in range(60)]
    path = _jsonl(tmp_path, *lines, {**line(60, 0, 1.0), "grade": None})
    mapping = {"messages": "messages", "reward": "grade", "error": "broke"}
    assert len(_attempts(_mapped(path, mapping))) == 61


def test_what_the_mapping_does_not_speak_of_is_found_by_its_usual_name(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, {**line(1, 2, 1.0), "mark": 0.5})
    found = _mapped(path, {"reward": "mark", "model": None})
    [attempt] = _attempts(found)
    assert (attempt.task_id, attempt.repeat, attempt.model) == ("1", 2, "")
    assert (list(attempt.scores), attempt.reward) == (["mark"], "mark")
    [remark] = [f.text for f in found if isinstance(f, Remark)]
    assert "task_id = task_id; attempt = trial." in remark


def test_attempts_of_one_id_and_different_numbers_share_the_question_although_users_vary(
    tmp_path: Path,
) -> None:
    rows = []
    for trial, hello in ((0, "Hi!"), (1, "Hello, I want to fly."), (1, "Good day.")):
        row = line(1, trial, 1.0)
        row["messages"][1]["content"] = hello
        rows.append(row)
    path = _jsonl(tmp_path, *rows)
    assert [a.question for a in attempts_of(FORM, path)] == ["Hi!", "Hi!", "Good day."]
    assert any("as those of simulated users do" in text for text in remarks_of(FORM, path))


def test_records_that_are_there_twice_have_the_same_question_both_times(tmp_path: Path) -> None:
    rows = []
    for trial, hello in ((0, "Hi!"), (1, "Hello, I want to fly.")):
        row = line(1, trial, 1.0)
        row["messages"][1]["content"] = hello
        rows += [row, row]
    assert [a.question for a in attempts_of(FORM, _jsonl(tmp_path, *rows))] == ["Hi!"] * 4


def test_an_id_with_another_system_prompt_is_another_task(tmp_path: Path) -> None:
    airline, retail = line(0, 0, 1.0), line(0, 1, 1.0)
    retail["messages"][0]["content"] = "Help the customer of a shop."
    retail["messages"][1]["content"] = "Where is my parcel?"
    questions = [a.question for a in attempts_of(FORM, _jsonl(tmp_path, airline, retail))]
    assert questions == ["Which seats of flight 0 are free?", "Where is my parcel?"]


def test_a_file_that_the_user_names_but_whose_columns_tell_nothing_is_refused_with_its_columns(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=r"say it in a mapping .its columns are: a, b"):
        list(FORM.read(Opened(_jsonl(tmp_path, {"a": 1, "b": 2}, {"a": 3, "b": 4}))))


def test_from_and_value_pairs_are_messages(tmp_path: Path) -> None:
    pairs = [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "1+1?"},
        {"from": "gpt", "value": "2"},
    ]
    [attempt] = attempts_of(FORM, _jsonl(tmp_path, {"id": "a", "conversations": pairs, "score": 1}))
    assert (attempt.question, attempt.system, attempt.trajectory.answer) == ("1+1?", "Be brief.", "2")


@pytest.mark.parametrize(
    ("prompt", "completion"),
    [
        ("1+1?", "2"),
        ([{"role": "user", "content": "1+1?"}], [{"role": "assistant", "content": "2"}]),
        ([{"role": "user", "content": "1+1?"}], "2"),
        ("<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n", "2<|im_end|>"),
    ],
)
def test_prompt_and_completion_may_be_text_or_messages(tmp_path: Path, prompt: Any, completion: Any) -> None:
    [attempt] = attempts_of(
        FORM, _jsonl(tmp_path, {"prompt": prompt, "completion": completion, "score": "C"})
    )
    assert (attempt.question, attempt.trajectory.answer) == ("1+1?", "2")
    assert [m.role for m in attempt.trajectory.messages] == ["user", "assistant"]
    assert attempt.scores["score"].value == 1.0


def test_an_id_of_each_attempt_is_not_taken_for_that_of_the_task(tmp_path: Path) -> None:
    rows = [{"id": f"a{i}", "question": "1+1?", "output": str(i), "score": 0} for i in range(4)]
    assert [a.task_id for a in attempts_of(FORM, _jsonl(tmp_path, *rows))] == [None] * 4
    others = [{"id": f"t{i % 2}", "question": f"{i % 2}+1?", "output": str(i), "score": 0} for i in range(4)]
    assert [a.task_id for a in attempts_of(FORM, _jsonl(tmp_path, *others))] == ["t0", "t1", "t0", "t1"]


def test_an_error_is_no_zero(tmp_path: Path) -> None:
    rows = [
        {"question": "1+1?", "output": "", "score": 0.0, "error": error}
        for error in ("timeout", {"message": "crashed"}, True, None, "", "None", False)
    ]
    assert [a.error for a in attempts_of(FORM, _jsonl(tmp_path, *rows))] == [
        *("timeout", "crashed", "it broke off"),
        *(None, None, None, None),
    ]


def test_rows_of_tasks_are_no_attempts(tmp_path: Path) -> None:
    assert not FORM.recognises(opened(_jsonl(tmp_path, {"question": "1+1?", "answer": "2"})))
    prompts = {"messages": [{"role": "user", "content": "1+1?"}], "answer": "2"}
    assert not FORM.recognises(opened(_jsonl(tmp_path, prompts)))
    parallel = {"prompt": "1+1?", "response": [1, 2]}
    assert not FORM.recognises(opened(_jsonl(tmp_path, parallel)))


@pytest.mark.parametrize(
    "text", ["", "plain words\nand more", "{", "a,b\n1,2\n", "\x00\x01\x02", "[1, 2]", "<html></html>"]
)
def test_other_files_are_not_recognised(tmp_path: Path, text: str) -> None:
    assert not FORM.recognises(opened(_csv(tmp_path, text)))


def test_a_csv_file_is_read_with_its_line_breaks_percentages_and_gaps(tmp_path: Path) -> None:
    path = _csv(
        tmp_path,
        "\ufeffquestion;response;score\r\n"
        '"Two lines:\r\n1+1?";"It is ""2""";75%\r\n'
        "1+1?;3;N/A\r\n"
        "1+1?;4;\r\n"
        "1+1?;5;0.5\r\n",
    )
    found = read(FORM, path)
    attempts = _attempts(found)
    assert [(a.place, a.scores["score"].value, a.scores["score"].raw) for a in attempts] == [
        ("line 2", 0.75, "75%"),
        ("line 4", None, "N/A"),
        ("line 5", None, ""),
        ("line 6", 0.5, "0.5"),
    ]
    assert (attempts[0].question, attempts[0].trajectory.answer) == ("Two lines:\r\n1+1?", 'It is "2"')


def test_messages_in_a_cell_are_json(tmp_path: Path) -> None:
    cell = json.dumps(messages(1, 0)).replace('"', '""')
    [attempt] = attempts_of(FORM, _csv(tmp_path, f'task_id,messages,reward\n1,"{cell}",1\n'))
    assert len(attempt.trajectory.steps) == 1


def test_a_cell_of_more_than_131072_characters_is_read(tmp_path: Path) -> None:
    [attempt] = attempts_of(FORM, _csv(tmp_path, f"question,response\n1+1?,{'x' * 200_000}\n"))
    assert len(attempt.trajectory.answer) == 200_000


def test_bad_rows_of_a_csv_file_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b'question,response\n1+1?,2\n"open,3\n1+2?,3\n1+3?\ncaf\xe9?,4\n1+4?,5\n')
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [
        ("line 3", "a quotation mark is never closed"),
        ("line 5", "1 fields where the header has 2"),
        ("line 6", "it holds bytes that are not UTF-8"),
    ]
    assert [a.question for a in attempts_of(FORM, path)] == ["1+1?", "1+2?", "1+4?"]


WIDE = """text,expected,base_predicted,base_correct,tuned_predicted,tuned_correct
How warm?,21,20,False,21,True
How cold?,2,1,False,,
"""


def test_a_wide_table_holds_an_attempt_in_each_group_of_columns(tmp_path: Path) -> None:
    found = read(FORM, _csv(tmp_path, WIDE))
    attempts = _attempts(found)
    assert [(a.question, a.repeat, a.trajectory.answer, a.scores["correct"].value) for a in attempts] == [
        ("How warm?", 0, "20", 0.0),
        ("How warm?", 1, "21", 1.0),
        ("How cold?", 0, "1", 0.0),
    ]
    assert [a.place for a in attempts] == ["line 2, base", "line 2, tuned", "line 3, base"]
    assert attempts[0].metadata == {"attempt": "base"}
    assert any(
        "attempts = columns that begin with base_, tuned_" in f.text for f in found if isinstance(f, Remark)
    )


def test_the_mapping_may_name_the_columns_of_attempts_by_their_beginning_or_end(tmp_path: Path) -> None:
    path = _csv(tmp_path, "q,out_1,ok_1,out_2,ok_2\n1+1?,2,yes,3,no\n")
    mapping = {"question": "q", "completion": "out", "reward": "ok", "attempts": ["*_1", "*_2"]}
    found = _mapped(path, mapping)
    assert [(a.trajectory.answer, a.scores["ok"].value, a.reward) for a in _attempts(found)] == [
        ("2", 1.0, "ok"),
        ("3", 0.0, "ok"),
    ]


@pytest.mark.parametrize(
    "layout", ["list", "list of lines", "pretty list", "object", "gzip", "parquet", "bom"]
)
def test_the_same_rows_are_read_from_every_kind_of_file(tmp_path: Path, layout: str) -> None:
    rows = [line(i // 2, i % 2, float(i % 2)) for i in range(4)]
    path = tmp_path / "r"
    match layout:
        case "list":
            path.write_text(json.dumps(rows))
        case "list of lines":
            path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
        case "pretty list":
            path.write_text(json.dumps(rows, indent=1))
        case "object":
            path.write_text(json.dumps({"name": "x", "results": rows}))
        case "gzip":
            path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
        case "bom":
            path.write_bytes(b"\xef\xbb\xbf" + "\n".join(map(json.dumps, rows)).encode())
        case _:
            pq.write_table(pa.Table.from_pylist(rows), path)
    assert FORM.recognises(opened(path))
    counts = counted(read(FORM, path))
    assert (counts.attempts, counts.tasks, counts.scored, counts.steps, counts.failed) == (4, 2, 4, 4, 2)


def test_bare_messages_are_one_ungraded_attempt(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(messages(1, 0)))
    assert FORM.recognises(opened(path))
    [attempt] = attempts_of(FORM, path)
    assert (attempt.question, attempt.scores) == ("Which seats of flight 1 are free?", {})


def test_bad_records_are_set_aside_and_the_others_stand(tmp_path: Path) -> None:
    path = _jsonl(
        tmp_path,
        line(1, 0, 1.0),
        "garbage",
        {**line(1, 1, 1.0), "messages": None},
        {"messages": [{"role": "assistant", "content": "2"}]},
        json.dumps(line(1, 2, 1.0))[:50],
    )
    assert [(a.place, a.reason) for a in asides_of(FORM, path)] == [
        ("line 2", "not JSON: Expecting value at character 1"),
        ("line 3", "there are neither messages nor a completion"),
        ("line 4", "there is no question"),
        ("line 5", "the line is cut off: its JSON ends in the middle"),
    ]
    assert len(attempts_of(FORM, path)) == 1


def test_any_type_anywhere_gives_attempts_or_asides_and_no_traceback(tmp_path: Path) -> None:
    odd: list[Any] = [None, 1, "x", [], {}, [[]], {"a": []}, float("nan"), "\ud800\x00", True]
    rows = [{**line(1, 0, 1.0), key: value} for key in line(1, 0, 1.0) for value in odd]
    found = read(FORM, _jsonl(tmp_path, *rows))
    attempts = [f for f in found if isinstance(f, Attempt)]
    assert len(attempts) + sum(isinstance(f, Aside) for f in found) == len(rows)
    assert as_stored(attempts) == attempts


NOTHING_DONE = "nothing is recorded of what the model did"


@pytest.mark.parametrize(
    "given",
    [[], [{"role": "user", "content": "How much is 2 + 3?"}], [{"role": "system", "content": "Add."}]],
)
def test_a_score_for_what_was_not_recorded_is_no_attempt(tmp_path: Path, given: list[Any]) -> None:
    path = _jsonl(tmp_path, line(1, 0, 1.0), {**line(1, 1, 1.0), "messages": given})
    [aside] = asides_of(FORM, path)
    assert (aside.place, NOTHING_DONE in aside.reason) == ("line 2", True)
    assert len(attempts_of(FORM, path)) == 1


def test_an_attempt_that_broke_off_before_the_model_said_anything_is_one(tmp_path: Path) -> None:
    row = {**line(1, 1, 1.0), "messages": [], "error": "the provider is down"}
    [_, broken] = attempts_of(FORM, _jsonl(tmp_path, line(1, 0, 1.0), row))
    assert broken.error == "the provider is down"


@pytest.mark.parametrize("said", ["", "5"])
def test_an_answer_beside_a_score_is_an_attempt_also_where_it_is_empty(tmp_path: Path, said: str) -> None:
    path = _jsonl(
        tmp_path, {"task_id": "a", "question": "How much is 2 + 3?", "completion": said, "score": 1.0}
    )
    [attempt] = attempts_of(FORM, path)
    assert (attempt.trajectory.answer, attempt.scores["score"].value) == (said, 1.0)


def test_bare_messages_without_a_turn_of_the_model_are_no_attempt(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, {"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 3?"})
    [aside] = asides_of(FORM, path)
    assert NOTHING_DONE in aside.reason
