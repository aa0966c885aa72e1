"""What a run may take, said before it: against what the ledger says after it."""

from __future__ import annotations

import pytest

from core.experience import Experience
from core.library import Library
from core.rollout import Task
from core.settings import AgentConfig, Endpoint, Resample, RewardConfig, RunConfig, VerifierSpec
from core.workspace import Workspace
from core.workspace.estimating import Bounds, Estimate, estimate
from tests.make import add_stub, add_tasks, make_tasks
from tests.stub_server import StubServer, by_stage

ENDPOINT = Endpoint(name="stub", base_url="http://127.0.0.1:9/v1", model="m", price_in=1.0, price_out=2.0)
CONFIG = RunConfig(endpoint="stub", group_size=4, max_tokens=32, batch_size=5)


def estimated(config: RunConfig = CONFIG, tasks: int = 12, **more: object) -> Estimate:
    return estimate(make_tasks(tasks), config, ENDPOINT, Library(), **more)  # type: ignore[arg-type]


def calls(bounds: Bounds) -> tuple[int, int]:
    return bounds.low.calls, bounds.high.calls


def test_each_rollout_is_a_call_and_with_n_each_group() -> None:
    assert calls(estimated().rollouts) == (48, 48)
    taking_n = ENDPOINT.model_copy(update={"sends_n": True})
    assert calls(estimate(make_tasks(12), CONFIG, taking_n, Library()).rollouts) == (12, 12)


def test_a_reply_of_one_token_is_the_least_and_a_full_one_the_most() -> None:
    found = estimated().rollouts
    assert (found.low.completion_tokens, found.high.completion_tokens) == (48, 48 * 32)
    assert 0 < found.low.prompt_tokens < found.high.prompt_tokens
    for usage in (found.low, found.high):
        assert usage.cost_usd == pytest.approx((usage.prompt_tokens + 2 * usage.completion_tokens) / 1e6)


def test_extraction_is_nothing_at_the_least_and_all_groups_at_the_most() -> None:
    assert calls(estimated().extraction) == (0, 0)
    found = estimated(extractor=ENDPOINT).extraction
    assert calls(found) == (0, 12 * 5 + 3)  # G + 1 for each group, one for each of three batches
    held_out = CONFIG.model_copy(update={"split": "trial"})
    assert calls(estimated(held_out, extractor=ENDPOINT).extraction) == (0, 0)  # only train tasks teach


def test_epochs_and_sampling_anew_raise_the_most_only() -> None:
    config = CONFIG.model_copy(update={"epochs": 3, "resample": Resample(attempts=2)})
    found = estimated(config, extractor=ENDPOINT)
    assert calls(found.rollouts) == (48, 48 * 3 * 3)
    assert calls(found.extraction) == (
        0,
        3 * 63,
    )  # a task is informative once an epoch, however often it is sampled


def test_an_agent_may_answer_at_once_or_use_all_its_steps_with_a_growing_prompt() -> None:
    config = CONFIG.model_copy(update={"agent": AgentConfig(max_steps=3)})
    found = estimated(config, tasks=1).rollouts
    assert calls(found) == (4, 16)
    assert found.high.prompt_tokens > 4 * 4 * estimated(tasks=1).rollouts.high.prompt_tokens / 4
    gated = AgentConfig(max_steps=3, gates=(VerifierSpec(kind="regex", options={"pattern": "x"}),))
    assert calls(estimated(CONFIG.model_copy(update={"agent": gated}), tasks=1).rollouts) == (4, 20)


def test_no_prompt_is_taken_to_be_longer_than_the_context() -> None:
    small = ENDPOINT.model_copy(update={"context_length": 1024})
    config = CONFIG.model_copy(update={"agent": AgentConfig(max_steps=100)})
    found = estimate(make_tasks(1), config, small, Library(), extractor=small)
    assert found.rollouts.high.prompt_tokens <= found.rollouts.high.calls * (1024 - 32)
    assert found.extraction.high.prompt_tokens <= found.extraction.high.calls * 1024


def test_a_judge_is_asked_once_for_each_rollout_and_verifier_that_asks() -> None:
    judged = RewardConfig(verifiers={"style": VerifierSpec(kind="judge", options={"rubric": "Be kind."})})
    config = CONFIG.model_copy(update={"reward": judged})
    assert calls(estimated(config, judge=ENDPOINT).judging) == (48, 48)
    assert calls(estimated(judge=ENDPOINT).judging) == (0, 0)
    assert calls(estimated(config).judging) == (0, 0)


def test_only_lessons_of_the_tasks_own_domain_cost_tokens() -> None:
    def high(domain: str) -> int:
        lesson = Experience(id="E-0001", text="Give the number alone, without a word.", domain=domain)
        task = Task(id="t", question="What is 1 + 1?", answer="2", domain="sums")
        library = Library.of([lesson])
        return estimate([task], CONFIG, ENDPOINT, library).rollouts.high.prompt_tokens

    assert high("sums") > high("capitals")
    assert high("general") == high("sums")


def test_what_the_ledger_says_after_a_run_lies_within_what_was_said_before(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(12))
    with StubServer(by_stage) as stub:
        config = add_stub(workspace, stub.base_url, price_in=1.0, price_out=1.0)
        add_stub(workspace, stub.base_url, "teacher", context_length=16_000)
        config = config.model_copy(update={"extraction_endpoint": "teacher"})
        plan = workspace.learning.plan(config)
        sampled, teacher = workspace.models.get("stub"), workspace.models.get("teacher")
        said = estimate(plan.tasks, config, sampled, Library(), extractor=teacher)
        run = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
    spent = {row.label: row.usage for row in workspace.store.spending.by("stage", run_id=run.id)}
    assert spent["rollout"].calls == said.rollouts.low.calls == said.rollouts.high.calls
    assert said.rollouts.low.completion_tokens <= spent["rollout"].completion_tokens
    assert spent["rollout"].completion_tokens <= said.rollouts.high.completion_tokens
    assert spent["rollout"].cost_usd <= said.rollouts.high.cost_usd
    assert 0 < spent["extraction"].calls <= said.extraction.high.calls
    assert spent["extraction"].prompt_tokens <= said.extraction.high.prompt_tokens
