"""What a report of an evaluation tells beside its numbers: on the command line, as JSON and as HTML."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from core.cli import main
from core.evaluation import as_html
from core.experience import Add, Evidence
from core.proof import COUNTED, PARTLY, Arm, EvaluationConfig, standing
from core.worker import Worker
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_proposal, make_tasks
from tests.stub_server import Fault, StubServer, solver

NONE = Arm(name="none", kind="none")


def winnow(workspace: Workspace, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])


def evaluated(workspace: Workspace, faults: int = 0, **settings: object) -> None:
    """EV1: three tasks, two rollouts of each, the first of which break off."""
    add_tasks(workspace, make_tasks(3, split="trial"))
    with StubServer(solver, faults=[Fault("malformed")] * faults) as stub:
        add_stub(workspace, stub.base_url, retries=0, concurrency=1, **settings)
        config = EvaluationConfig(endpoint="stub", arms=(NONE,), samples=2)
        started = workspace.evaluating.start(config, "ann")
        workspace.evaluating.work(started.id, "ann")


def test_where_rollouts_broke_off_every_number_says_of_how_many_tasks_it_is(workspace: Workspace) -> None:
    evaluated(workspace, faults=3)  # the first task wholly, the second one by half
    report = workspace.evaluating.report("EV1")
    arm = report.arms[0]
    assert (arm.tasks, arm.scored_tasks, arm.pass_tasks) == (3, 2, {1: 2, 2: 1})
    shown = winnow(workspace, "eval", "show", "EV1").output
    assert f"{arm.mean:.3f} (n 2)" in shown
    assert f"@2 {arm.pass_at[2]:.2f} (n 1)" in shown
    page = as_html(report)
    assert f"{arm.mean:.3f} (n 2)" in page
    assert f"{arm.pass_at[2]:.3f} (n 1)" in page
    assert PARTLY in shown
    assert PARTLY in page


def test_where_all_was_scored_no_number_of_tasks_is_said_twice(workspace: Workspace) -> None:
    evaluated(workspace)
    assert "(n " not in winnow(workspace, "eval", "show", "EV1").output
    assert "(n " not in as_html(workspace.evaluating.report("EV1"))


def test_why_rollouts_broke_off_is_told_with_the_command_that_makes_up_for_them(workspace: Workspace) -> None:
    evaluated(workspace, faults=3)
    report = workspace.evaluating.report("EV1")
    why = report.arms[0].why
    assert why.startswith("3 × ")
    shown = winnow(workspace, "eval", "show", "EV1").output
    assert f"none: 3 rollouts broke off: {why}." in shown
    command = "winnow eval start --resume EV1 --retry-failed"
    assert command in shown
    assert command in as_html(report)
    assert json.loads(winnow(workspace, "eval", "show", "EV1", "--json").stdout)["arms"][0]["reasons"]


def test_it_is_told_what_calls_and_cost_are_of(workspace: Workspace) -> None:
    evaluated(workspace)
    assert COUNTED in winnow(workspace, "eval", "show", "EV1").output
    assert COUNTED in as_html(workspace.evaluating.report("EV1"))


def test_a_cost_that_nobody_knows_is_no_price_and_not_0(workspace: Workspace) -> None:
    evaluated(workspace)
    shown = winnow(workspace, "eval", "show", "EV1").output
    page = as_html(workspace.evaluating.report("EV1"))
    plan = winnow(workspace, "run", "--endpoint", "stub", "--split", "trial", "--dry-run").output
    sent = winnow(workspace, "spend").output
    for said in (shown, page, plan, sent):
        assert "no price" in said
        assert "$0" not in said
    assert json.loads(winnow(workspace, "eval", "show", "EV1", "--json").stdout)["arms"][0]["priced"] is False


def test_a_cost_at_a_price_is_told_in_dollars(workspace: Workspace) -> None:
    evaluated(workspace, price_in=1000.0)
    shown = winnow(workspace, "eval", "show", "EV1").output
    assert f"${workspace.evaluating.report('EV1').arms[0].cost_usd:.4f}" in shown
    plan = winnow(workspace, "run", "--endpoint", "stub", "--split", "trial", "--dry-run").output
    assert "no price" not in shown + plan


def test_the_embedded_model_really_costs_nothing(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    plan = winnow(workspace, "run", "--endpoint", "embedded", "--split", "trial", "--dry-run")
    assert "$0.0000 to $0.0000" in plan.output


def teach(workspace: Workspace, text: str) -> None:
    made = make_proposal(Add(text=text)).model_copy(update={"evidence": Evidence()})
    (proposal_id,) = workspace.store.proposals.add([made], "test")
    workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("test", "ann")


def test_the_newest_version_is_told_by_the_number_that_it_had_when_it_was_asked(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    teach(workspace, "Answer with the number alone.")
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        arms = ("none", "version:newest", "majority:version:newest")
        assert winnow(workspace, "eval", "start", *arms, "--endpoint", "stub", "-n", "2").exit_code == 0
        teach(workspace, "Add the tens first.")
        shown = winnow(workspace, "eval", "show", "EV1").output
        assert "version:1 against none: " in shown
        assert "majority:version:1: majority vote over the replies of version:1." in shown
        assert "newest" not in shown
        twice = winnow(workspace, "eval", "start", "version:newest", "version:2", "--endpoint", "stub")
        assert twice.exit_code == 2
        assert "Two arms are version:2" in twice.output


def test_an_arm_that_is_not_named_for_its_version_has_it_told(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    teach(workspace, "Answer with the number alone.")
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        shown = winnow(
            workspace, "eval", "start", "none", "mine=version:newest", "--endpoint", "stub", "-n", "2"
        )
    assert "mine: version 1." in shown.output
    assert "none: no library" not in shown.output


def test_a_success_is_told_and_has_to_be_a_number(workspace: Workspace) -> None:
    evaluated(workspace)
    shown = winnow(workspace, "eval", "report", "EV1", "--success", "0.5").output
    assert "a success is a reward of 0.5 or more" in shown
    for no_number in ("nan", "inf"):
        refused = winnow(workspace, "eval", "report", "EV1", "--success", no_number)
        assert refused.exit_code == 2
        assert "--success" in refused.output
        assert len(refused.output.strip().splitlines()) == 1


def test_an_evaluation_whose_job_is_paused_is_paused_everywhere(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3, split="trial"))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        config = EvaluationConfig(endpoint="stub", arms=(NONE,), samples=2, max_calls=3)
        started = workspace.evaluating.start(config, "ann")
        workspace.jobs.enqueue(started.id, "ann")
        before = workspace.store.evaluations.stamp("EV1")
        workspace.jobs.pause("EV1", "ann")
        assert workspace.store.evaluations.stamp("EV1") != before  # what a page keeps says it, too
        workspace.jobs.resume("EV1", "ann")
        Worker(workspace).serve(once=True)
    assert "EV1 is paused: " in winnow(workspace, "eval", "show", "EV1").output
    assert " paused " in winnow(workspace, "eval", "list").output
    assert json.loads(winnow(workspace, "eval", "show", "EV1", "--json").stdout)["job_state"] == "paused"


def test_a_job_that_ended_does_not_say_how_an_evaluation_stands() -> None:
    assert standing("waiting", "done") == "waiting"
    assert standing("done", "paused") == "done"
    assert standing("running", "failed") == "failed"
    assert standing("waiting", None) == "waiting"
