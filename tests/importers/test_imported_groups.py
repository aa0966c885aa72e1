"""The main job on rollouts that came from elsewhere: browsed, contrasted, proposed, decided on, published."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.figures import GroupFilter
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.intake import ImportOptions, ImportReport
from tests.importers.make_tau_bench import crashed, record, write
from tests.make import add_stub

TASKS, TRIALS = 10, 6


def attempt(task: int, trial: int) -> dict[str, Any]:
    """Who reads the policy before anything else gets it right; the last of each task crashed."""
    if trial == TRIALS - 1:
        return crashed(task, trial)
    right = trial % 2 == 0
    made = record(task, trial, float(right))
    if right:
        call = copy.deepcopy(made["traj"][2])
        call["tool_calls"][0] |= {"id": "call_0"}
        call["tool_calls"][0]["function"] = {"name": "read_policy", "arguments": '{"about": "cancelling"}'}
        result = {
            "role": "tool",
            "tool_call_id": "call_0",
            "name": "read_policy",
            "content": "Ask for a reason.",
        }
        made["traj"][2:2] = [call, result]
    return made


@pytest.fixture
def imported(workspace: Workspace, tmp_path: Path) -> ImportReport:
    path = tmp_path / "some-model-airline.json"
    write(path, [attempt(task, trial) for task in range(TASKS) for trial in range(TRIALS)])
    return workspace.intake.add_rollouts([path], ImportOptions(), "ann")


def test_groups_are_there_to_be_browsed_counted_and_compared(
    workspace: Workspace, imported: ImportReport
) -> None:
    assert (imported.groups, imported.informative, imported.errors) == (TASKS, TASKS, TASKS)
    rows, total = workspace.store.groups.page(which=GroupFilter(run_id=imported.run_id or ""))
    assert total == TASKS
    assert {(row.size, row.scored, row.errors, row.mean) for row in rows} == {(6, 5, 1, 0.6)}
    run = workspace.store.runs.get(imported.run_id or "")
    assert (run.status, run.kind, run.model, run.tally.informative) == (
        "done",
        "recorded",
        "some-model",
        TASKS,
    )
    group = workspace.store.groups.get(rows[0].id)
    assert [r.outcome for r in group.rollouts] == ["scored"] * 5 + ["error"]
    assert sum(r.advantage or 0 for r in group.rollouts) == pytest.approx(0)
    assert group.rollouts[-1].advantage is None


def test_lessons_come_from_the_contrast_and_go_into_a_version(
    workspace: Workspace, imported: ImportReport
) -> None:
    drawn = workspace.learning.propose(imported.run_id or "", "ann")
    assert drawn.made.proposed > 0
    [reading], _ = workspace.store.proposals.page()
    assert "0 of 30 winners called get_user first, 20 of 20 losers" in reading.evidence.sentence
    assert set(reading.evidence.group_ids) <= {r.id for r in workspace.store.groups.page(imported.run_id)[0]}
    workspace.review.approve(reading.id, "ann")
    version = workspace.review.publish("From elsewhere", "ann")
    lessons = workspace.store.versions.library(version.number)
    [lesson] = list(lessons)
    assert lesson.text == "In tau bench airline tasks, do not start with `get_user`."
    assert lesson.domain == "tau-bench airline"
    again = workspace.learning.propose(imported.run_id or "", "ann")
    assert again.made.proposed == 0, "what was proposed before is not proposed twice"


def test_a_run_on_tasks_that_nothing_can_check_is_refused_in_one_sentence(
    workspace: Workspace, imported: ImportReport
) -> None:
    config = add_stub(workspace, "http://127.0.0.1:9/v1").model_copy(
        update={"domains": ("tau-bench airline",)}
    )
    with pytest.raises(InputError, match="Nothing here checks any of the 10 train tasks asked for"):
        workspace.learning.start(RunConfig(**config.model_dump()), "ann")


def test_a_run_of_recorded_rollouts_is_never_worked_on_as_a_sampled_one(
    workspace: Workspace, imported: ImportReport
) -> None:
    before = workspace.store.dump()
    assert workspace.learning.work(imported.run_id or "", "ann").status == "done"
    assert workspace.store.dump() == before
