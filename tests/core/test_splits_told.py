"""An import of recorded rollouts says which of its tasks teach nothing, and which stay in another split."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from tests.make import add_rollouts, add_tasks, make_task


def rows(*tasks: int, attempts: int = 2) -> bytes:
    made = [
        {"task_id": f"T{t}", "question": f"Say {t}.", "completion": f"{n}", "score": n, "trial": n}
        for t in tasks
        for n in range(attempts)
    ]
    return "\n".join(map(json.dumps, made)).encode()


NEW = "2 new tasks are in the split final, which only reports: nothing is learned from them."
STAY = "2 tasks are here already and in the split final, and stay there."


def test_new_tasks_of_the_split_final_are_told_before_and_after(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(rows(1, 2))
    options = ImportOptions(split="final")
    assert workspace.intake.look([path], options).splits == (NEW,)
    assert workspace.intake.add_rollouts([path], options, "ann").splits == (NEW,)
    assert workspace.intake.add_rollouts([path], options, "ann").splits == ()


def test_that_known_tasks_stay_where_they_are_is_told(workspace: Workspace) -> None:
    add_rollouts(workspace, rows(1, 2), split="final")
    assert add_rollouts(workspace, rows(1, 2), split="train").splits == (STAY,)
    assert add_rollouts(workspace, rows(1, 2, 3, attempts=3), name="more.jsonl", split="train").splits == (
        STAY,
    )


def test_a_new_task_that_goes_to_the_split_of_its_text_is_told(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(id="own", question="Say 1.", split="trial")])
    assert add_rollouts(workspace, rows(1, 2)).splits == (
        "1 new task is in the split trial, which only selects lessons: nothing is learned from them.",
    )


def test_tasks_that_teach_as_they_were_asked_to_need_no_word(workspace: Workspace) -> None:
    assert add_rollouts(workspace, rows(1)).splits == ()
    assert add_rollouts(workspace, rows(1)).splits == ()


@pytest.mark.parametrize("dry", [True, False])
def test_the_command_tells_it(workspace: Workspace, tmp_path: Path, dry: bool) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(rows(1, 2))
    asked = ["rollouts", "import", str(path), "--split", "final", "--workspace", str(workspace.folder)]
    done = CliRunner().invoke(main, [*asked, *(["--dry-run"] if dry else [])])
    assert NEW in done.stdout, done.output
    again = [*asked[:3], "--split", "train", *asked[5:]]
    assert dry or STAY in CliRunner().invoke(main, again).stdout
