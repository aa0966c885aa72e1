"""What a reviewer of the engine could break once: each stays broken for nobody else."""

from __future__ import annotations

import asyncio

import pytest

from core.errors import InputError
from core.ports import Sampling
from core.rollout import Message
from core.settings import AgentConfig, RewardConfig, RunConfig, VerifierSpec
from core.workspace import Workspace
from tests.core.test_gates import gated, learn, teacher
from tests.make import add_stub, add_tasks, make_tasks
from tests.scripted_agent import attempted, says
from tests.stub_server import Fault, StubServer

HELLO = [Message(role="user", content="What is 2 + 3?")]


def test_time_in_our_own_queue_is_not_held_against_a_rollout(workspace: Workspace) -> None:
    with StubServer(latency_s=0.2) as stub:
        add_stub(workspace, stub.base_url, concurrency=1)

        async def main() -> list[object]:
            async with workspace.models.access() as access:
                chat = access.chat("stub", "rollout")
                await chat.complete(
                    HELLO, Sampling(), [9]
                )  # what is loaded and connected first takes its time
                return list(await chat.complete(HELLO, Sampling(), range(8), timeout_s=1.2))

        found = asyncio.run(main())
    assert not [reply for reply in found if isinstance(reply, str)], (
        "eight replies of 0.2 s one after another, each in its own time"
    )


def test_an_agent_whose_model_never_replied_broke_off_and_was_not_wrong() -> None:
    config = AgentConfig(tools=("files",), time_limit_s=0.2)
    attempt, _ = attempted([says("4", delay_s=30)], config)
    assert attempt.error == "The model gave no reply within 0.2 seconds."


def test_what_people_said_of_outcomes_outlives_a_retry(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer(faults=[Fault("status", 400, message="no")]) as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
        group = workspace.store.groups.get(f"{run.id}-0001")
        good = [r.id for r in group.rollouts if not r.error]
        workspace.rescoring.accept(good, True, "ann")
        workspace.learning.retry(run.id, "test")
        assert workspace.store.groups.waiting(run.id)
        workspace.learning.work(run.id, "test")
    again = workspace.store.groups.get(f"{run.id}-0001")
    assert [r.id for r in again.rollouts if r.accepted] == good
    assert not any(r.error for r in again.rollouts)


def test_a_verifier_of_the_run_cannot_take_the_place_of_the_tasks_own(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    reward = RewardConfig(verifiers={"numeric": VerifierSpec(kind="exact")})
    with pytest.raises(InputError, match="tasks' own verifier goes by"):
        workspace.learning.plan(RunConfig(reward=reward))


def test_a_run_does_not_go_on_with_another_model(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    with StubServer() as stub:
        run = workspace.learning.start(add_stub(workspace, stub.base_url), "test")
        other = workspace.models.get("stub").model_copy(update={"model": "another-model"})
        workspace.models.save(other, "test")
        with pytest.raises(InputError, match="was begun with stub-model"):
            workspace.learning.work(run.id, "test")
        assert stub.stats()["calls"] == 0


def test_a_cap_on_money_needs_the_price_of_everyone_who_is_asked(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    with StubServer() as stub, StubServer(teacher) as extractor:
        config = gated(workspace, stub, extractor)
        priced = workspace.models.get("stub").model_copy(update={"price_in": 1.0})
        workspace.models.save(priced, "test")
        capped = config.model_copy(update={"max_cost_usd": 1.0})
        with pytest.raises(InputError, match="extractor has no price"):
            workspace.learning.plan(capped)
        run = workspace.learning.start(config, "test")
        with pytest.raises(InputError, match="extractor has no price"):
            workspace.learning.work(run.id, "test", caps=capped)


def test_rescoring_refuses_a_verifier_that_could_judge_nothing(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
    judge = VerifierSpec(kind="judge", options={"rubric": "Is it right?"})
    before = workspace.store.dump()
    with pytest.raises(InputError, match="cannot judge here"):
        workspace.rescoring.rescore(run.id, "ann", RewardConfig(verifiers={"nice": judge}), anew=["nice"])
    assert workspace.store.dump() == before


def test_the_id_of_a_discarded_proposal_is_never_given_again(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer() as stub, StubServer(teacher) as extractor:
        config = gated(workspace, stub, extractor, gate="review")
        first = learn(workspace, config)
        gone = {p.id for p in workspace.store.proposals.page(run_id=first.id)[0]}
        workspace.learning.cancel(first.id, "ann", discard=True)
        assert {p.status for p in workspace.store.proposals.page(run_id=first.id)[0]} == {"quarantined"}
        second = learn(workspace, config)
    assert gone.isdisjoint(p.id for p in workspace.store.proposals.page(run_id=second.id)[0])
    with pytest.raises(InputError, match="was discarded"):
        workspace.learning.work(first.id, "test")


def test_the_review_gate_waits_for_the_same_lesson_of_another_run_too(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer() as stub, StubServer(teacher) as extractor:
        config = gated(workspace, stub, extractor, gate="review")
        learn(workspace, config)
        second = learn(workspace, config.model_copy(update={"max_tokens": 33}))
    assert (second.status, second.extraction.proposed) == ("review", 0)
    assert second.extraction.waiting_for


def test_a_run_that_was_interrupted_does_not_say_that_it_runs(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))

    def interrupt(what: str, done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with StubServer() as stub:
        run = workspace.learning.start(add_stub(workspace, stub.base_url), "test")
        with pytest.raises(BaseException, match=r"^$|unhandled"):
            workspace.learning.work(run.id, "test", interrupt)
    assert workspace.store.runs.get(run.id).status == "waiting"


@pytest.mark.parametrize(
    "agent", [{"tools": ["fetch"]}, {"tools": ["files"], "fetch_hosts": ["example.org"]}]
)
def test_fetching_needs_a_host_and_a_host_needs_fetching(agent: dict[str, object]) -> None:
    with pytest.raises(InputError, match="belong together"):
        RunConfig.read({"agent": agent}, where="run")
