"""What the gate of a run may take is in what is said before the run starts, and what it sent is within that."""

from __future__ import annotations

from click.testing import CliRunner

from core.cli import main
from core.settings import RunConfig
from core.store.evaluations import GATE_TRIED
from core.workspace import Workspace
from core.workspace.planning import Plan
from core.workspace.trial_gate import LEAST_TASKS, SAMPLES
from tests.core.test_evaluation_effects import GOOD, learn, publish, reply, teaching, trial
from tests.make import add_stub, add_tasks, make_task, make_tasks
from tests.stub_server import StubServer

CONFIG = {"endpoint": "stub", "group_size": 4, "max_tokens": 32, "batch_size": 6}


def planned(workspace: Workspace, **fields: object) -> Plan:
    add_stub(workspace, "http://127.0.0.1:9/v1", price_in=1.0, price_out=2.0)
    config = RunConfig.model_validate({**CONFIG, "gate": "trial", **fields})
    return workspace.learning.plan(config)


def gate_calls(workspace: Workspace, **fields: object) -> tuple[int, int]:
    gate = planned(workspace, **fields).estimate.gate
    return gate.low.calls, gate.high.calls


def test_the_total_holds_the_gate_from_nothing_to_all_that_can_be_tried(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(60))  # 40 select, 20 are left for the estimate
    plan = planned(workspace)
    without = planned(workspace, gate="none")
    proposals = 4
    most = SAMPLES * (proposals * (40 + 20) + 40 + 2 * 20)
    assert (plan.estimate.gate.low.calls, plan.estimate.gate.high.calls) == (0, most)
    assert plan.estimate.total.low == without.estimate.total.low
    assert plan.estimate.total.high.calls == without.estimate.total.high.calls + most
    assert plan.estimate.total.high.cost_usd > without.estimate.total.high.cost_usd
    assert plan.estimate.gate.high.completion_tokens == most * 32
    assert "a proposal takes 240 calls, on 40 trial tasks and 20 fresh ones if it passes" in plan.notes[-1]
    assert "at most 4 (4 of each domain and batch from what is counted)" in plan.notes[-1]


def test_without_fresh_tasks_the_new_version_is_held_against_the_old_one_on_the_same(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(40))
    assert gate_calls(workspace) == (0, SAMPLES * 40 * (4 + 3))


def test_batches_epochs_a_model_and_live_lessons_make_more_proposals_possible(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(40))
    one = SAMPLES * 40
    assert gate_calls(workspace, epochs=2)[1] == one * (2 * 8 + 2 * 3), (
        "a lesson of the first may be deleted by the second"
    )
    add_stub(workspace, "http://127.0.0.1:9/v1", "teacher", context_length=16_000)
    assert gate_calls(workspace, extraction_endpoint="teacher")[1] == one * (4 + 3 * 6 + 3)
    publish(workspace, GOOD)
    assert gate_calls(workspace)[1] == one * (5 + 3)


def test_of_several_domains_a_lesson_may_reach_all_of_their_trial_tasks(workspace: Workspace) -> None:
    numbers = {("train", "sums"): range(3), ("train", "more"): range(3, 6)}
    numbers |= {("trial", "sums"): range(100, 140), ("trial", "more"): range(200, 240)}
    for (split, domain), own in numbers.items():
        add_tasks(workspace, [make_task(n, split=split, domain=domain) for n in own])
    assert gate_calls(workspace)[1] == SAMPLES * 80 * (3 * 4 + 3)
    assert gate_calls(workspace, domains=("sums",))[1] == SAMPLES * 40 * (4 + 3)


def test_a_gate_that_can_try_nothing_takes_nothing_and_says_why(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(LEAST_TASKS - 1))
    plan = planned(workspace)
    assert plan.estimate.gate.high.calls == 0
    assert ["takes 40 trial tasks" in note for note in plan.notes] == [True]


def test_what_the_gate_sent_is_within_what_was_said(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(66))
    with StubServer(reply) as stub, StubServer(teaching(GOOD)) as teacher:
        started = learn(workspace, stub, teacher)
        said = workspace.learning.plan(started.config).estimate
        workspace.learning.work(started.id, "ann")
    assert any(e.kind == GATE_TRIED for e in workspace.store.events.newest(1_000))
    spent = workspace.store.spending.of_run(started.id)
    assert said.rollouts.high.calls + said.extraction.high.calls < spent.calls <= said.total.high.calls
    assert spent.prompt_tokens <= said.total.high.prompt_tokens
    assert spent.completion_tokens <= said.total.high.completion_tokens


def test_a_dry_run_counts_the_gate_in_its_total(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    add_tasks(workspace, trial(60))
    add_stub(workspace, "http://127.0.0.1:9/v1")
    words = ("run", "--endpoint", "stub", "-g", "4", "--dry-run", "--workspace", str(workspace.folder))
    assert "In all 24 to 24 calls" in CliRunner().invoke(main, words).output
    gated = CliRunner().invoke(main, (*words, "--gate", "trial")).output
    assert f"In all 24 to {24 + 1280:,} calls" in gated
    assert "The gate is in the total" in gated
