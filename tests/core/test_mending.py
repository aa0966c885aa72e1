"""What a person needs to mend a task file: its columns, what is rejected in the format it came in, and what is new."""

from __future__ import annotations

import io
import json

import pytest

from core.importers import read_tasks
from core.importers.mending import columns_of, rows_again
from core.rollout import Task
from core.workspace import Workspace
from tests.make import add_tasks, make_task

JSONL = b'{"question": "q1", "answer": "1"}\n{"answer": "x"}\nnot JSON\n\n{"question": "q2", "answer": "2"}\n'
JSON = b'[{"question": "q1", "answer": "1"}, {"answer": "x"}, 3, {"question": "q2", "answer": "2"}]'
CSV = b'question,answer\n"a, ""b""\nc",1\n"",5\n"x, y",1,2\n\nq,2\n'


def rejected(data: bytes, name: str) -> tuple[bytes, str]:
    return rows_again(data, name, read_tasks(data, name=name).rejected)


@pytest.mark.parametrize(
    ("data", "name", "back", "ending"),
    [
        (JSONL, "a.jsonl", b'{"answer": "x"}\nnot JSON\n', "jsonl"),
        (JSON, "a.json", b'[\n{"answer": "x"},\n3\n]\n', "json"),
        (CSV, "a.csv", b'question,answer\n"",5\n"x, y",1,2\n', "csv"),
        (b"question\tanswer\nq\t1\n\t2\n", "a.tsv", b"question\tanswer\n\t2\n", "tsv"),
    ],
)
def test_rejected_rows_come_back_as_they_came(data: bytes, name: str, back: bytes, ending: str) -> None:
    assert rejected(data, name) == (back, ending)


def test_rejected_rows_are_rejected_again_and_mended_ones_come_in() -> None:
    back, _ = rejected(JSONL, "a.jsonl")
    again = read_tasks(back.replace(b'{"answer": "x"}', b'{"question": "q3", "answer": "x"}'))
    assert ([t.question for t in again.tasks], len(again.rejected)) == (["q3"], 1)


def test_rejected_rows_of_a_parquet_file_are_a_parquet_file() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    pq.write_table(pa.table({"question": ["q", "", "r", None], "answer": ["1", "2", "3", "4"]}), out)
    back, ending = rejected(out.getvalue(), "a.parquet")
    assert ending == "parquet"
    assert pq.read_table(pa.BufferReader(back)).to_pylist() == [
        {"question": "", "answer": "2"},
        {"question": None, "answer": "4"},
    ]


def test_a_rejected_row_comes_back_whole_however_long_it_is() -> None:
    long = json.dumps({"answer": "x" * 50_000}).encode()
    assert rejected(long + b'\n{"question": "q"}\n', "a.jsonl")[0].startswith(long + b"\n")


def test_of_rows_on_one_line_only_the_rejected_ones_come_back() -> None:
    data = b'[{"question": "q", "answer": "1"}, {"question": "", "answer": "1"}, {"question": "q2", "answer": "1"}]'
    assert json.loads(rejected(data, "a.json")[0]) == [{"question": "", "answer": "1"}]


def test_columns_are_told_with_what_they_hold_and_what_they_are_read_as() -> None:
    found = columns_of(b'{"problem": "q1", "gold": 1, "note": ""}\n{"problem": "q2"}\n', "a.jsonl")
    assert [(c.name, c.filled, c.example) for c in found.columns] == [
        ("problem", 2, "q1"),
        ("gold", 1, "1"),
        ("note", 0, ""),
    ]
    assert found.guess == {"question": "problem", "answer": "gold"}


def test_a_file_without_a_question_still_tells_its_columns() -> None:
    found = columns_of(b"colour,size\nred,3\n", "a.csv")
    assert ([c.name for c in found.columns], found.guess) == (["colour", "size"], {})


def test_a_field_can_be_read_from_no_column_at_all() -> None:
    data = b'{"question": "q", "output": "not an answer", "answer": "1"}\n'
    assert read_tasks(data).tasks[0].answer == "1"
    found = read_tasks(b'{"question": "q", "output": "x"}', mapping={"answer": ""}, verifier=None)
    assert "answer" not in found.mapping
    assert "needs an answer" in found.rejected[0].reason


# --- against a workspace ---


def test_what_is_new_known_taken_and_repeated_is_told_before_it_is_added(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1), make_task(2), make_task(3, split="final")])
    file = [
        make_task(1),
        make_task(2, question="Another question under a known id?"),
        make_task(3, id="new-id"),  # the question of t-003, which is final
        make_task(9),
    ]
    found = workspace.store.tasks.against(file)
    assert (set(found.known), set(found.taken)) == ({"t-001"}, {"t-002"})
    assert found.repeated == {"new-id": "t-003"}
    assert found.moved == {"new-id": "final"}
    added = workspace.store.tasks.add(file, [1, 2, 3, 4], "f", "ann")
    assert (added.added, added.known, len(added.refused), added.moved) == (2, 1, 1, ("new-id",))


def test_adding_tells_how_far_it_is_and_adds_up_over_portions(workspace: Workspace) -> None:
    many = [make_task(i, question=f"What is {i} times 2?") for i in range(2_500)]
    again = [*many, many[7], make_task(8, question="Something else?")]
    told: list[int] = []
    added = workspace.store.tasks.add(
        again, range(len(again)), "f", "ann", lambda what, done, total: told.append(done)
    )
    assert (added.added, added.known, len(added.refused)) == (2_500, 1, 1)
    assert told == [1_000, 2_000, 2_502]


def test_the_first_of_two_new_tasks_of_one_text_decides_their_split(workspace: Workspace) -> None:
    same = "What is one and one?"
    workspace.store.tasks.add(
        [make_task(1, question=same, split="final"), make_task(2, question=same.upper())], [1, 2], "f", "ann"
    )
    assert [t.split for t in workspace.store.tasks.page()[0]] == ["final", "final"]


# --- lists ---


def test_tasks_are_filtered_by_the_kind_of_their_verifier_too(workspace: Workspace) -> None:
    add_tasks(
        workspace, [make_task(1), make_task(2, verifier={"kind": "text"}), make_task(3, domain="words")]
    )
    assert workspace.store.tasks.kinds() == {"numeric": 2, "text": 1}
    found, total = workspace.store.tasks.page(kind="numeric", domain="sums")
    assert ([t.id for t in found], total) == (["t-001"], 1)


def test_a_task_that_is_read_back_is_the_task_that_was_added(workspace: Workspace) -> None:
    task = make_task(1, metadata={"system": "Be brief.", "n": [1, None]}, domain="dé", split="trial")
    add_tasks(workspace, [task])
    assert workspace.store.tasks.find("t-001") == task
    assert Task.model_validate(workspace.store.tasks.page()[0][0].model_dump()) == task


def test_rows_kept_aside_are_paged_by_kind(workspace: Workspace) -> None:
    file = workspace.intake.read_tasks(JSONL, name="a.jsonl")
    workspace.intake.add_tasks(file, "a.jsonl", "ann")
    rows, total = workspace.store.tasks.aside("task", limit=1)
    assert (len(rows), total, rows[0].line) == (1, 2, 3)
    assert workspace.store.tasks.aside("rollout") == ([], 0)
