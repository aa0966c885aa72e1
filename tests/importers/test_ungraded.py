"""Attempts that came in without a reward: no failure, and it is told how they are graded."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.importers import gathering
from core.importers.formats import FORMATS
from core.migrations.m016_ungraded import m016_ungraded
from core.rollout import UNGRADED, Group
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.importers.fake_format import FakeFormat, attempt, write


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


@pytest.fixture
def path(workspace: Workspace, tmp_path: Path) -> Path:
    """A file of an ungraded group, one of which an attempt broke off, and one of which all did."""
    lines = [attempt("t1"), attempt("t1", answer="b")]
    lines += [attempt("t2"), attempt("t2", answer="b", error="503"), attempt("t3", error="503")]
    path = write(tmp_path / "a.jsonl", *lines)
    workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    return path


def told(workspace: Workspace) -> list[tuple[str, str]]:
    rows = workspace.store.groups.page("R1")[0]
    return [(row.status, row.reason) for row in rows]


NOT_FAILED = ("uninformative", UNGRADED)
FAILED = ("failed", "all failed: 1 of 1 rollouts broke off")


@pytest.mark.usefixtures("path")
def test_groups_without_a_reward_are_ungraded_and_not_failed(workspace: Workspace) -> None:
    assert told(workspace) == [NOT_FAILED, NOT_FAILED, FAILED]


def test_they_are_graded_by_a_file_of_rewards_that_comes_later(
    workspace: Workspace, path: Path, tmp_path: Path
) -> None:
    rewards = tmp_path / "rewards.csv"
    rewards.write_text("task_id,reward\nt1,1\n")
    assert workspace.intake.add_rollouts([path], ImportOptions(rewards=rewards), "ann").regraded == 2
    assert told(workspace)[0] == ("uninformative", "all equal: reward 1")


@pytest.mark.usefixtures("path")
def test_the_command_line_tells_the_way_on(workspace: Workspace) -> None:
    words = ["runs", "group", "R1-0001", "--workspace", str(workspace.folder)]
    lines = CliRunner().invoke(main, words).stdout.splitlines()
    assert lines[0] == f"R1-0001 (uninformative: {UNGRADED})"
    assert lines[-1].startswith(
        "To grade them, import the same files again with --score NAME or --rewards FILE, or let"
    )


@pytest.mark.usefixtures("path")
def test_a_run_whose_file_names_no_model_says_nothing_of_one(workspace: Workspace) -> None:
    said = CliRunner().invoke(main, ["runs", "show", "R1", "--workspace", str(workspace.folder)]).stdout
    assert "operations suggested" in said
    assert "Why: winnow runs show" not in said  # this is it
    assert "R1: 3 groups under version 0: 0 informative, 2 uninformative, 1 failed" in said


@pytest.mark.usefixtures("path")
def test_groups_of_an_older_workspace_are_no_failures_any_more(workspace: Workspace) -> None:
    database = workspace.store._database.handle
    with workspace.store.writing():
        database.execute("UPDATE groups SET status = 'failed', reason = 'no rollout could be scored'")
        judged = '{"numeric": {"value": null}}'  # a verifier that could not tell is another thing
        database.execute("UPDATE rollouts SET scores = ? WHERE id = 'R1-0002-0'", [judged])
        m016_ungraded(database)
    found: list[Group] = [workspace.store.groups.get(f"R1-000{n}") for n in (1, 2, 3)]
    assert [g.status for g in found] == ["uninformative", "failed", "failed"]
    assert found[0].reason == UNGRADED
