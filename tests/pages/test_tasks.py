"""The pages of tasks: a list that the address holds, one task, and an import that is seen before it happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.rollout import Task
from core.settings import VerifierSpec
from core.workspace import Workspace
from tests.make import add_rollouts
from tests.pages.workspaces import add_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ROWS = '{"question": "What is 2 + 2?", "answer": "4"}\n{"answer": "5"}\n'
HOSTILE = "<script>alert(1)</script> ![x](http://h/) $a$ -> **b** \u202eabc"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 tasks in 300 domains."""
    ws = Workspace(tmp_path_factory.mktemp("large") / "workspace")
    tasks = [
        Task(
            id=f"q-{i}",
            question=f"What is {i} plus {i}?",
            answer=str(2 * i),
            domain=f"domain {i % 300}",
            verifier=VerifierSpec(kind="numeric"),
        )
        for i in range(20_000)
    ]
    ws.store.tasks.add(tasks, range(len(tasks)), "many.jsonl", "ann")
    return ws.folder


def open_page(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "learn" / f"{name}.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def html(page: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def fine(page: AppTest) -> AppTest:
    assert not page.exception, page.exception[0].stack_trace
    assert '<div class="w-error"' not in html(page)
    return page


def red(page: AppTest) -> str:
    assert not page.exception, page.exception[0].stack_trace
    [line] = html(page).split('<div class="w-error" role="alert">')[1:]
    return line.split("</div>")[0]


def paste(text: str) -> AppTest:
    page = open_page("import_tasks")
    return page.text_area("import_paste").set_value(text).run()


# --- the list ---


def test_tasks_are_filtered_by_split_kind_and_words(ws: Workspace) -> None:
    page = fine(open_page("tasks"))
    page.selectbox("task_split").set_value("final").run()
    page.text_input("task_search").set_value("weekday").run()
    assert len(fine(page).dataframe[0].value) == 4
    page.selectbox("task_kind").set_value("numeric").run()
    assert "No task fits" in html(fine(page))
    fine(page.button("task_clear").click().run())
    assert len(page.dataframe[0].value) == 39


def test_the_address_says_which_tasks_are_listed(ws: Workspace) -> None:
    page = fine(open_page("tasks", task_split="trial", task_domain="sums"))
    assert list(page.dataframe[0].value["Id"]) == ["sums-trial-0", "sums-trial-1", "sums-trial-2"]


def test_a_chosen_row_opens_its_task_and_the_address_names_it(ws: Workspace) -> None:
    page = open_page("tasks")
    page.session_state["tasks_____0_False"] = {"selection": {"rows": [2], "columns": [], "cells": []}}
    fine(page.run())
    assert "sums-train-2" in html(page)
    assert page.query_params["id"] == "sums-train-2"
    fine(page.button("task_close").click().run())
    assert "id" not in page.query_params


def test_one_task_shows_its_text_its_verifier_and_its_groups(ws: Workspace) -> None:
    page = fine(open_page("tasks", id="sums-train-0"))
    drawn = html(page)
    assert "What is 10 + 0? Answer with the number only. (train)" in drawn
    assert "&quot;kind&quot;: &quot;numeric&quot;" in drawn
    assert "R1-0001" in drawn
    assert "tasks.jsonl" in drawn


def test_a_task_that_nobody_tried_says_so(ws: Workspace) -> None:
    assert "No run has tried it yet." in html(fine(open_page("tasks", id="sums-final-0")))


def test_a_task_that_is_not_there_says_so_and_the_list_stays(ws: Workspace) -> None:
    page = fine(open_page("tasks", id="<b>none</b>"))
    assert "There is no task of this id here." in html(page)
    assert page.dataframe


def test_foreign_text_of_a_task_is_shown_as_it_is(folder: Path) -> None:
    ws = Workspace(folder)
    task = Task(
        id="<i>x</i>", question=HOSTILE, answer=HOSTILE, domain="![d](http://h/)", metadata={"m": HOSTILE}
    )
    ws.store.tasks.add([task], [1], "a.jsonl", "ann")
    add_run(ws, [task])
    drawn = html(fine(open_page("tasks", id="<i>x</i>")))
    assert "<script>" not in drawn
    assert "&lt;script&gt;alert(1)&lt;/script&gt; ![x](http://h/) $a$ -&gt; **b**" in drawn
    assert "RIGHT-TO-LEFT OVERRIDE" in drawn


def test_a_large_workspace_sends_one_page_of_tasks(
    monkeypatch: pytest.MonkeyPatch, folder: Path, large: Path
) -> None:
    monkeypatch.setenv("WINNOW_WORKSPACE", str(large))
    page = fine(open_page("tasks", task_page="400"))
    assert len(page.dataframe[0].value) == 50
    assert page.dataframe[0].value["Id"].iloc[-1] == "q-19999"
    assert "The first 200 of 300 domains." in html(page)


def test_rows_that_were_kept_aside_are_listed_with_their_reason(ws: Workspace) -> None:
    ws.intake.add_tasks(ws.intake.read_tasks(ROWS.encode(), name="a.jsonl"), "a.jsonl", "ann")
    page = open_page("tasks")
    [fold] = [e for e in page.expander if e.label.startswith("Rows set aside")]
    assert fold.label == "Rows set aside\\: 1"


# --- the import ---


def test_pasted_tasks_are_previewed_then_imported(folder: Path) -> None:
    page = fine(paste(ROWS))
    assert page.button("import_now").label == "Import 1 valid task"
    assert "set aside" in html(page)
    assert Workspace(folder).store.tasks.page()[1] == 0, "nothing is imported before it is asked for"
    page.button("import_now").click().run()
    found = Workspace(folder)
    assert (found.store.tasks.page()[1], found.store.tasks.count_aside()) == (1, 1)


def test_a_file_that_only_gives_answers_to_tasks_that_are_here_can_be_imported(folder: Path) -> None:
    row = {"task_id": "T1", "question": "How much is 1 + 1?", "completion": "2", "score": 1.0}
    add_rollouts(Workspace(folder), json.dumps(row).encode(), split="final")
    page = fine(paste('{"id": "T1", "question": "How much is 1 + 1?", "answer": "2", "split": "train"}\n'))
    assert page.button("import_now").label == "Give 1 task an answer"
    assert "rewards that are there stay as they are" in html(page)
    assert "Tasks that are here stay in the split that they have: 1 final." in html(page)
    page.button("import_now").click().run()
    found = Workspace(folder).store.tasks.find("T1")
    assert found is not None
    assert (found.answer, found.verifier.kind, found.split) == ("2", "numeric", "final")


def test_a_wrong_file_is_one_red_line_and_nothing_is_imported(folder: Path) -> None:
    page = paste("PK\x03\x04 something")
    assert "zip archive" in red(page)
    assert Workspace(folder).store.tasks.page()[1] == 0


def test_a_file_without_a_question_names_its_columns_and_one_can_be_pointed_at(folder: Path) -> None:
    page = paste("riddle,answer\nWhat is green?,grass\n")
    assert "riddle" in red(page)
    assert "riddle" in page.selectbox("map_question").options
    page.selectbox("map_question").set_value("riddle").run()
    assert fine(page).button("import_now").label == "Import 1 valid task"


def test_another_column_can_be_chosen_as_the_question(folder: Path) -> None:
    page = paste("question,riddle,answer\nQ,What is green?,grass\n")
    page.selectbox("map_question").set_value("riddle").run()
    page.button("import_now").click().run()
    assert Workspace(folder).store.tasks.page()[0][0].question == "What is green?"


def test_a_field_can_be_left_without_a_column(folder: Path) -> None:
    page = paste('{"question": "Q?", "answer": "4", "category": "sums"}\n')
    assert page.selectbox("map_domain").value == "category"
    page.selectbox("map_domain").set_value("").run()
    page.button("import_now").click().run()
    assert Workspace(folder).store.tasks.page()[0][0].domain == "general"


def test_another_file_begins_with_its_own_columns(folder: Path) -> None:
    page = paste("question,riddle,answer\nQ,What is green?,grass\n")
    page.selectbox("map_question").set_value("riddle").run()
    page.text_area("import_paste").set_value("problem,gold\nP?,1\n").run()
    assert fine(page).selectbox("map_question").value == "problem"


def test_shares_and_seed_decide_where_rows_without_a_split_go(folder: Path) -> None:
    page = paste(
        "".join(json.dumps({"question": f"Number {i}?", "answer": str(i)}) + "\n" for i in range(20))
    )
    page.number_input("import_share_train").set_value(50)
    page.number_input("import_share_trial").set_value(50)
    page.number_input("import_share_final").set_value(0)
    fine(page.run())
    page.button("import_now").click().run()
    assert Workspace(folder).store.tasks.counts()["general"] == {"train": 10, "trial": 10}


def test_shares_that_are_all_zero_are_one_red_line(folder: Path) -> None:
    page = paste(ROWS)
    for split in ("train", "trial", "final"):
        page.number_input(f"import_share_{split}").set_value(0)
    assert "not all of them 0" in red(page.run())


def test_what_is_here_already_and_what_repeats_is_told_before_it_is_imported(ws: Workspace) -> None:
    known = ws.store.tasks.find("sums-train-0")
    assert known is not None
    rows = [
        {
            "id": known.id,
            "question": known.question,
            "answer": known.answer,
            "domain": "sums",
            "verifier": "numeric",
        },
        {"id": "sums-train-1", "question": "Another one?", "answer": "1"},
        {"id": "new", "question": "Something new?", "answer": "1"},
        {"id": "new", "question": "Something new?", "answer": "1"},
    ]
    page = fine(paste("".join(json.dumps(row) + "\n" for row in rows)))
    assert page.button("import_now").label == "Import 1 valid task"
    drawn = html(page)
    assert "<b>1</b> already here" in drawn
    assert "= 4 rows" in drawn
    told = list(page.dataframe[-1].value["What"])
    assert any("already here" in line for line in told)
    assert any("another task here" in line for line in told)
    assert any("same row as line 3" in line for line in told)


def test_the_rows_of_the_file_add_up_whatever_becomes_of_them(folder: Path) -> None:
    drawn = html(fine(paste(ROWS + '{"question": "Q2?", "answer": "4"}\n' * 2)))
    assert all(
        part in drawn
        for part in ("<b>2</b> new tasks", "<b>1</b> repeated", "<b>1</b> set aside", "= 4 rows")
    )


def test_a_reader_sees_what_would_come_in_and_cannot_import_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_ROLE", "reader")
    assert fine(paste(ROWS)).button("import_now").disabled
