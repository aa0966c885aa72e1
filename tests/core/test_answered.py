"""Tasks that came in with recorded rollouts get what checks them from a task file; what is here is never changed."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from core.cli import main
from core.rollout import Task
from core.settings import RewardConfig, RunConfig, VerifierSpec
from core.workspace import Workspace
from core.workspace.intake import TasksImported
from tests.make import add_rollouts, add_tasks, make_task

Rows = list[dict[str, object]]


def came_in(workspace: Workspace, *, split: str = "train", ids: bool = True, **more: object) -> str:
    """Two tasks with two recorded rollouts each, and nothing that checks them; gives the run."""
    rows = [
        {"question": f"How much is {n} + 1?", "completion": said, "score": float(said == str(n + 1)), **more}
        | ({"task_id": f"T{n}"} if ids else {})
        for n in (1, 2)
        for said in (str(n + 1), "no idea")
    ]
    run_id = add_rollouts(workspace, "\n".join(map(json.dumps, rows)).encode(), split=split).run_id
    assert run_id is not None
    return run_id


def answers(**more: object) -> Rows:
    return [
        {"id": f"T{n}", "question": f"How much is {n} + 1?", "answer": str(n + 1), **more} for n in (1, 2)
    ]


def bring(workspace: Workspace, rows: Rows, *, dry: bool = False) -> TasksImported:
    file = workspace.intake.read_tasks("\n".join(map(json.dumps, rows)).encode(), name="a.jsonl")
    intake = workspace.intake
    return intake.weigh_tasks(file, "a.jsonl") if dry else intake.add_tasks(file, "a.jsonl", "ann")


def found(workspace: Workspace, task_id: str) -> Task:
    task = workspace.store.tasks.find(task_id)
    assert task is not None
    return task


def test_a_file_with_their_ids_questions_and_answers_makes_them_tasks_that_can_be_sampled(
    workspace: Workspace,
) -> None:
    run_id = came_in(workspace)
    before = [workspace.store.groups.get(row.id) for row in workspace.store.groups.page(run_id)[0]]
    stamp = workspace.store.tasks.stamp()
    for dry in (True, False):
        done = bring(workspace, answers(level=3, split="train"), dry=dry)
        assert (done.added, done.known, done.answered, done.set_aside) == (0, 0, ("T1", "T2"), ())
    assert (found(workspace, "T1").answer, found(workspace, "T1").verifier.kind) == ("2", "numeric")
    assert len(workspace.learning.plan(RunConfig()).tasks) == 2
    assert workspace.store.tasks.stamp() != stamp
    assert before == [workspace.store.groups.get(row.id) for row in workspace.store.groups.page(run_id)[0]]
    [event] = [e for e in workspace.store.events.newest() if e.kind == "tasks.answered"]
    assert (event.actor, event.subject, event.data["tasks"]) == ("ann", "a.jsonl", ["T1", "T2"])


def test_the_same_file_again_changes_nothing(workspace: Workspace) -> None:
    came_in(workspace)
    bring(workspace, answers(level=3, domain="sums"))
    before = workspace.store.dump()
    done = bring(workspace, answers(level=3, domain="sums"))
    assert (done.known, done.answered, done.set_aside) == (2, (), ())
    assert workspace.store.dump() == before


def test_an_answer_or_a_question_that_is_there_is_never_changed(workspace: Workspace) -> None:
    came_in(workspace, answer="2")
    others: Rows = [
        {"id": "T1", "question": "How much is 1 + 1?", "answer": "3"},
        {"id": "T2", "question": "How much is 2 + 2?", "answer": "2"},
    ]
    done = bring(workspace, others)
    assert (done.answered, [row.line for row in done.set_aside]) == ((), [1, 2])
    assert found(workspace, "T1").verifier.kind == "none"
    [same] = bring(workspace, [{**others[0], "answer": "2"}]).answered
    assert (found(workspace, same).answer, found(workspace, same).verifier.kind) == ("2", "numeric")
    assert len(bring(workspace, [others[0]]).set_aside) == 1, "it has an answer now"
    assert found(workspace, "T1").answer == "2"


def test_a_task_that_has_a_verifier_keeps_it(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(id="T9", question="How much is 1 + 1?", answer="2")])
    row: dict[str, object] = {"id": "T9", "question": "How much is 1 + 1?", "answer": "2", "verifier": "text"}
    assert len(bring(workspace, [row]).set_aside) == 1
    assert found(workspace, "T9").verifier.kind == "numeric"


def test_a_row_without_an_id_is_the_task_that_asks_the_same(workspace: Workspace) -> None:
    came_in(workspace, ids=False)
    rows: Rows = [{k: v for k, v in row.items() if k != "id"} for row in answers()]
    assert bring(workspace, rows, dry=True).added == 0
    assert len(bring(workspace, rows).answered) == 2
    assert bring(workspace, rows).known == 2
    assert workspace.store.tasks.page()[1] == 2


def test_what_is_judged_by_its_form_needs_no_answer(workspace: Workspace) -> None:
    came_in(workspace)
    rows: Rows = [{**row, "answer": None} for row in answers()]
    form = VerifierSpec(kind="regex", options={"pattern": r"\d+"}).model_dump(mode="json")
    assert len(bring(workspace, [{**row, "verifier": form} for row in rows]).answered) == 2
    assert found(workspace, "T1").answer is None


def test_their_rollouts_can_be_judged_anew_by_the_answer(workspace: Workspace) -> None:
    run_id = came_in(workspace)
    bring(workspace, answers())
    reward = RewardConfig(verifiers={"own": VerifierSpec(kind="numeric")}, verifier_weights={"recorded": 0})
    done = workspace.rescoring.rescore(run_id, "ann", reward, anew=["own"])
    assert (done.judged, done.undecided) == ({"own": 4}, {})


def test_tasks_that_are_here_stay_in_their_split_and_that_is_said(workspace: Workspace) -> None:
    came_in(workspace, split="final")
    done = bring(workspace, answers(split="train"))
    assert (done.stay, found(workspace, "T1").split) == ({"final": 2}, "final")


@pytest.mark.parametrize("dry", [True, False])
def test_the_command_tells_who_got_an_answer_and_where_tasks_go(workspace: Workspace, dry: bool) -> None:
    came_in(workspace, split="final")
    path = workspace.folder / "a.jsonl"
    new: Rows = [{"question": f"How much is {n} + 3?", "answer": str(n + 3)} for n in range(5)]
    path.write_text("\n".join(map(json.dumps, [*answers(), *new])))
    asked = ["tasks", "import", str(path), "--split", "train", "--workspace", str(workspace.folder)]
    done = CliRunner().invoke(main, [*asked, *(["--dry-run"] if dry else [])])
    assert done.exit_code == 0, done.output
    assert f"2 tasks {'would get' if dry else 'got'} an answer" in done.stdout
    assert "Rewards that are there stay as they are" in done.stdout
    assert "Splits: 5 train;" in done.stdout
    assert "stay in the split that they have (2 final)" in done.stdout
