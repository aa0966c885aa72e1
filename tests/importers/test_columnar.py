"""Evaluations in which one row holds all attempts of a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.importers.formats.columnar import Columnar
from tests.importers.make_columnar import make, row
from tests.importers.making import asides_of, attempts_of, counted, opened, read, remarks_of

FORM = Columnar()


def _file(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "math.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_a_file_counts_as_a_person_counts_it(tmp_path: Path) -> None:
    counts = make(tmp_path / "math.jsonl")
    assert FORM.recognises(opened(tmp_path / "math.jsonl"))
    assert counted(read(FORM, tmp_path / "math.jsonl")) == counts
    assert (counts.attempts, counts.tasks, counts.scored) == (12, 3, 12)


def test_attempts_are_numbered_by_their_place_in_the_lists(tmp_path: Path) -> None:
    attempts = attempts_of(FORM, _file(tmp_path, row(2)))
    assert [(a.place, a.repeat, a.scores["score"].value, a.trajectory.answer) for a in attempts] == [
        ("line 1, attempt 1", 0, 1.0, "14"),
        ("line 1, attempt 2", 1, 0.0, "15"),
        ("line 1, attempt 3", 2, 0.0, "16"),
        ("line 1, attempt 4", 3, 0.0, "17"),
    ]
    assert (attempts[0].task_id, attempts[0].question, attempts[0].expected) == (
        "2",
        "How much is 2 times 7?",
        "14",
    )
    assert attempts[1].trajectory.messages[-1].content == "Attempt 1: it is 15."
    assert attempts[0].metadata == {"level": "Level 1"}


def test_lists_of_different_lengths_leave_the_rest_ungraded(tmp_path: Path) -> None:
    path = _file(tmp_path, row(2, score=[True, False]))
    assert [a.scores["score"].value for a in attempts_of(FORM, path)] == [1.0, 0.0, None, None]
    assert len(remarks_of(FORM, path)) == 1


def test_a_row_without_question_or_attempts_is_set_aside(tmp_path: Path) -> None:
    path = _file(tmp_path, row(1), row(2, question=None), row(3, 0), [1])
    assert [a.reason for a in asides_of(FORM, path)] == [
        *("there is no question", "it holds no attempt", "the line is no JSON object")
    ]


def test_any_type_in_the_lists_is_read_or_ungraded(tmp_path: Path) -> None:
    odd: list[Any] = [None, 1, "x", [], {}, float("nan")]
    attempts = attempts_of(FORM, _file(tmp_path, row(1, code=odd, pred=odd, score=odd, report=odd)))
    assert [a.scores["score"].value for a in attempts] == [None, 1.0, None, None, None, None]


def test_scores_alone_are_no_attempts_and_with_answers_they_are(tmp_path: Path) -> None:
    bare = {"idx": 7, "question": "How much is 2 times 3?", "gt": "6", "score": [True, False]}
    [aside] = asides_of(FORM, _file(tmp_path, row(2), bare))
    assert (aside.place, "nothing is recorded of what the model did" in aside.reason) == ("line 2", True)
    assert len(attempts_of(FORM, _file(tmp_path, row(2), bare | {"pred": ["6", "5"]}))) == 6
