"""Tasks that came in with recorded rollouts have nothing that checks them: they keep no others from being sampled."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from core.cli import main
from core.errors import InputError
from core.proof import Arm, EvaluationConfig
from core.rollout import Run
from core.settings import RewardConfig, RunConfig, VerifierSpec
from core.workspace import Workspace
from core.workspace.judgeable import judgeable
from core.workspace.rehearsing import rehearse
from tests.make import add_rollouts, add_stub, add_tasks, make_task, make_tasks
from tests.stub_server import Asked, StubServer

NONE = VerifierSpec(kind="none")
JUDGE = VerifierSpec(kind="judge", options={"rubric": "Is it right?"})
LEFT_OUT = "2 tasks are left out, since they came in with recorded rollouts"


def came_in(workspace: Workspace, split: str = "train", count: int = 2) -> None:
    """Import recorded rollouts of tasks that nothing here checks."""
    rows = [
        {"task_id": f"T{n}", "question": f"Say {n}.", "completion": said, "score": float(said == "yes")}
        for n in range(1, count + 1)
        for said in ("yes", "no")
    ]
    add_rollouts(workspace, "\n".join(map(json.dumps, rows)).encode(), split=split)


def verdict(asked: Asked) -> str:
    """A judge whose verdicts differ."""
    return json.dumps({"reason": "It is so.", "score": float(asked.rng.random() < 0.5)})


def sampled(workspace: Workspace, run: Run) -> set[str]:
    return {workspace.store.groups.get(row.id).task_id for row in workspace.store.groups.page(run.id)[0]}


def test_they_are_left_out_of_a_run_that_did_not_name_them_and_it_says_how_many(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5, domain="general"))
    came_in(workspace)
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        plan = workspace.learning.plan(config)
        assert [note for note in plan.notes if note.startswith(LEFT_OUT)]
        assert (plan.left_out, len(plan.tasks)) == (2, 5)
        run = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
    assert sampled(workspace, run) == {t.id for t in make_tasks(5)}
    assert run.tally.total == 5 == run.tally.informative + run.tally.uninformative


def test_a_limit_counts_tasks_that_can_be_judged(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, domain="general"))
    came_in(workspace, count=20)
    assert len(workspace.learning.plan(RunConfig(limit=3)).tasks) == 3


def test_they_are_left_out_of_an_evaluation_too(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5, domain="general", split="trial"))
    came_in(workspace, "trial")
    plan = workspace.evaluating.plan(EvaluationConfig(arms=(Arm(name="none", kind="none"),)))
    assert [note for note in plan.notes if note.startswith(LEFT_OUT)]
    assert set(plan.tasks) == {t.id for t in make_tasks(5)}


def test_only_where_none_is_left_it_is_refused(workspace: Workspace) -> None:
    came_in(workspace)
    came_in(workspace, "trial", count=1)
    with pytest.raises(
        InputError, match=r"Nothing here checks any of the 2 train tasks.*import their answers"
    ):
        workspace.learning.plan(RunConfig())
    add_tasks(workspace, [make_task(id="of-trial", split="trial")])
    assert workspace.evaluating.plan(EvaluationConfig(arms=(Arm(name="n", kind="none"),))).tasks == (
        "of-trial",
    )


def test_one_that_is_named_is_refused_by_its_name(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    came_in(workspace)
    with pytest.raises(InputError, match="Nothing here checks task 'T1'"):
        rehearse(workspace.store, workspace.models, RunConfig(), "T1")
    with pytest.raises(InputError, match="has no task 'T99'"):
        rehearse(workspace.store, workspace.models, RunConfig(), "T99")


def test_a_judge_of_the_run_judges_them_besides(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    came_in(workspace)
    reward = RewardConfig(verifiers={"nice": JUDGE})
    with pytest.raises(InputError, match="'judge' cannot judge here: no endpoint has the role"):
        workspace.learning.plan(RunConfig(reward=reward))
    with StubServer() as stub, StubServer(verdict) as judge:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, judge.base_url, "judge")
        config = config.model_copy(update={"reward": reward, "judge_endpoint": "judge"})
        assert workspace.learning.plan(config).left_out == 0
        run = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
    assert sampled(workspace, run) == {"T1", "T2", *(t.id for t in make_tasks(2))}
    groups = [workspace.store.groups.get(row.id) for row in workspace.store.groups.page(run.id)[0]]
    of_t1 = next(g for g in groups if g.task_id == "T1")
    assert all(r.reward == r.scores["nice"].value for r in of_t1.rollouts)
    assert run.tally.failed == 0


def test_a_verifier_of_the_run_judges_those_that_it_can() -> None:
    tasks = [make_task(id="with", verifier=NONE), make_task(id="own"), make_task(verifier=NONE)]
    tasks[2] = tasks[2].model_copy(update={"id": "without", "answer": None})

    def ids(reward: RewardConfig) -> list[str]:
        return [t.id for t in judgeable(tasks, reward)]

    text = {"t": VerifierSpec(kind="text")}
    assert ids(RewardConfig()) == ["own"]
    assert ids(RewardConfig(verifiers={"n": NONE})) == ["own"]
    assert ids(RewardConfig(verifiers=text)) == ["with", "own"]
    assert ids(RewardConfig(verifiers=text, verifier_weights={"t": 0})) == ["own"]
    assert ids(RewardConfig(verifiers={"j": JUDGE})) == ["with", "own", "without"]
    assert ids(RewardConfig(preset="agent-paper")) == ["with", "own", "without"]


def test_the_gate_counts_no_trial_task_that_nothing_checks(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2, domain="general"))
    came_in(workspace, "trial", count=60)
    assert "fewer in general (0)" in " ".join(workspace.learning.plan(RunConfig(gate="trial")).notes)


def test_the_commands_say_so_before_and_while_they_sample(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    came_in(workspace)
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        asked = ["run", "--workspace", str(workspace.folder), "--endpoint", "stub", "--max-tokens", "32"]
        dry = CliRunner().invoke(main, [*asked, "--dry-run"])
        done = CliRunner().invoke(main, asked)
    assert (dry.exit_code, LEFT_OUT in dry.stdout) == (0, True)
    assert (done.exit_code, LEFT_OUT in done.stderr) == (0, True)
