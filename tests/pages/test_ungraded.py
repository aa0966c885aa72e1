"""Groups that nobody graded, on the pages: a calm word, and the way to a reward."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.make_messages import line
from tests.pages.test_pages import fine, html, open_page

pytestmark = pytest.mark.slow


@pytest.fixture
def ungraded(folder: Path, tmp_path: Path) -> Workspace:
    """One imported run whose file holds no reward."""
    workspace = Workspace(folder)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(line(task, i, None))}\n" for task in range(2) for i in range(2)))
    workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    return workspace


@pytest.mark.parametrize(
    ("name", "of"),
    [("learn/group", "R1-0001"), ("learn/groups", ""), ("learn/run", "R1"), ("learn/runs", "")],
)
@pytest.mark.usefixtures("ungraded")
def test_no_page_calls_what_nobody_graded_a_failure(name: str, of: str) -> None:
    shown = html(fine(open_page(name, of)))
    assert "w-chip bad" not in shown
    assert "w-bad-fill" not in shown
    assert "ungraded" in shown or name == "learn/runs"


@pytest.mark.parametrize(("name", "of"), [("learn/group", "R1-0001"), ("learn/run", "R1")])
@pytest.mark.usefixtures("ungraded")
def test_a_button_leads_to_where_a_reward_comes_in(name: str, of: str) -> None:
    page = fine(open_page(name, of))
    assert page.button("grade").label == "Import a score or rewards for them"


@pytest.mark.usefixtures("ungraded")
def test_a_run_says_of_how_many_groups_nobody_graded_the_attempts(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text("".join(f"{json.dumps(line(0, i, 1.0 if i else None))}\n" for i in range(2, 4)))
    Workspace(folder).intake.add_rollouts([path], ImportOptions(), "ann")  # of one of the two groups
    shown = html(fine(open_page("learn/run", "R1")))
    assert "Nobody said yet how good the attempts of 1 group are" in shown


@pytest.mark.usefixtures("ungraded")
def test_where_some_groups_teach_the_ungraded_ones_are_still_told(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text("".join(f"{json.dumps(line(0, i, float(i % 2)))}\n" for i in range(2, 4)))
    Workspace(folder).intake.add_rollouts([path], ImportOptions(), "ann")
    page = fine(open_page("learn/run", "R1"))
    assert page.button("run_draw").label == "Draw lessons from it"
    assert "Nobody said yet how good the attempts of 1 group are" in html(page)
    assert page.button("grade")


@pytest.mark.usefixtures("ungraded")
def test_what_was_recorded_is_not_said_to_lack_a_cap() -> None:
    shown = html(fine(open_page("learn/run", "R1")))
    assert "model calls" in shown
    assert "no cap" not in shown


@pytest.mark.usefixtures("ungraded")
def test_the_group_tells_how_it_is_graded_here(folder: Path) -> None:
    shown = html(fine(open_page("learn/group", "R1-0001")))
    assert "say which of their scores is the reward, or add a file of rewards" in shown
    assert "winnow rescore R1 --verifier NAME=KIND" in shown
