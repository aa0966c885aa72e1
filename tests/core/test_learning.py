"""The loop over real HTTP, against the stub server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import BudgetError, BusyError, InputError, ModelUnavailableError
from core.rollout import Run
from core.settings import RunConfig
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_task, make_tasks, publish, ticking
from tests.stub_server import Asked, Fault, StubServer


def learn(workspace: Workspace, config: RunConfig) -> Run:
    return workspace.learning.work(workspace.learning.start(config, "test").id, "test")


def test_a_run_scores_every_rollout_and_its_groups_add_up(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(12))
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
    assert run.status == "done"
    assert run.tally.total == 12 == run.tally.informative + run.tally.uninformative
    assert run.tally.informative > 0
    for row, _ in [(r, None) for r in workspace.store.groups.page(run.id)[0]]:
        group = workspace.store.groups.get(row.id)
        assert len(group.rollouts) == 4
        assert all(r.reward in (0.0, 1.0) for r in group.rollouts)
        assert sum(r.advantage or 0 for r in group.rollouts) == pytest.approx(0, abs=1e-6)
    made = run.extraction
    assert made.suggested == made.proposed + made.joined + made.superseded + made.quarantined


def test_the_same_command_again_makes_no_call(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        first = learn(workspace, config)
        calls = stub.stats()["calls"]
        again = learn(workspace, config)
        assert (again.id, stub.stats()["calls"]) == (first.id, calls)
        other = learn(workspace, config.model_copy(update={"seed": 7}))
        assert other.id != first.id
        assert stub.stats()["calls"] > calls


def test_every_task_is_used_once_with_a_ragged_last_batch_and_a_seeded_order(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(11))
    config = RunConfig(group_size=2, batch_size=4)
    one, two = (workspace.learning.plan(config.model_copy(update={"seed": s})) for s in (1, 2))
    assert (
        sorted(t.id for t in one.tasks) == sorted(t.id for t in two.tasks) == [t.id for t in make_tasks(11)]
    )
    assert [t.id for t in one.tasks] != [t.id for t in two.tasks]
    assert one.tasks == workspace.learning.plan(config.model_copy(update={"seed": 1})).tasks
    run = workspace.learning.start(config, "test")
    assert [w.batch for w in workspace.store.groups.waiting(run.id)] == [
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        1,
        2,
        2,
        2,
    ]


def test_the_same_question_under_two_ids_makes_two_groups(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1, id="a"), make_task(1, id="b")])
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
    rows, total = workspace.store.groups.page(run.id)
    assert total == 2
    assert [r.size for r in rows] == [4, 4]


def test_what_is_published_stands_in_the_stored_messages_of_the_next_run(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    publish(workspace, "Answer with the number alone: ${x} {} 字.")
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
        assert (
            "[G0] Answer with the number alone: ${x} {} 字."
            in stub.requests[0].body["messages"][0]["content"]
        )
    rollout = workspace.store.groups.get(f"{run.id}-0001").rollouts[0]
    assert rollout.trajectory.messages[0].role == "system"
    assert "[G0] Answer with the number alone: ${x} {} 字." in rollout.trajectory.messages[0].content
    assert rollout.injected == {"G0": "E-0001"}
    assert run.library_version == 1


@pytest.mark.model
def test_what_does_not_fit_the_injection_budget_is_left_out_and_recorded(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    publish(workspace, "Answer with the number alone, and with nothing before or after it at all.")
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url, injection_tokens=5))
    group = workspace.store.groups.get(f"{run.id}-0001")
    assert group.not_injected == {"E-0001": "over budget"}
    assert [m.role for m in group.rollouts[0].trajectory.messages] == ["user", "assistant"]


def test_a_broken_call_is_an_error_and_not_a_wrong_answer(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    faults = [Fault("status", 400, message="no")] * 2
    with StubServer(faults=faults) as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
    group = workspace.store.groups.get(f"{run.id}-0001")
    broken = [r for r in group.rollouts if r.error]
    assert len(broken) == 2
    assert all(r.reward is None and r.advantage is None for r in broken)
    assert len(group.rollouts) == 4, "the denominator does not shrink unseen"


def test_broken_rollouts_can_be_tried_again_and_only_they_are_paid_for(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    with StubServer(faults=[Fault("status", 400, message="no")]) as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
        assert stub.stats()["calls"] == 8
        assert workspace.store.groups.reopen_failed(run.id, "test") == 1
        workspace.learning.work(run.id, "test")
        assert stub.stats()["calls"] == 9
    rows, _ = workspace.store.groups.page(run.id)
    assert [r.errors for r in rows] == [0, 0]


def test_a_bad_key_stops_the_run_with_one_sentence_and_the_run_can_go_on(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tasks(workspace, make_tasks(3))
    monkeypatch.setenv("WINNOW_KEY_STUB", "wrong-key-123456")
    with StubServer(key="right-key-123456") as stub:
        config = add_stub(workspace, stub.base_url, key_env="WINNOW_KEY_STUB")
        run = workspace.learning.start(config, "test")
        with pytest.raises(ModelUnavailableError) as caught:
            workspace.learning.work(run.id, "test")
        assert "wrong-key" not in str(caught.value)
        assert workspace.store.runs.get(run.id).status == "waiting"
        monkeypatch.setenv("WINNOW_KEY_STUB", "right-key-123456")
        assert workspace.learning.work(run.id, "test").tally.waiting == 0
    assert "right-key-123456" not in workspace.store.dump()
    assert b"right-key-123456" not in (workspace.folder / "winnow.db").read_bytes()


def test_a_cap_stops_the_run_before_it_is_passed(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url).model_copy(update={"max_calls": 10})
        run = workspace.learning.start(config, "test")
        with pytest.raises(BudgetError, match="10 calls"):
            workspace.learning.work(run.id, "test")
        assert stub.stats()["calls"] <= 10
        more = config.model_copy(update={"max_calls": 100})
        assert workspace.learning.start(more, "test").id == run.id, "another cap is the same run"
        assert workspace.learning.work(run.id, "test", caps=more).tally.waiting == 0


def test_two_processes_do_not_work_on_one_run(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    run = workspace.learning.start(RunConfig(group_size=2), "test")
    from filelock import FileLock

    workspace.learning._locks.mkdir()
    with FileLock(workspace.learning._locks / f"{run.id}.lock"), pytest.raises(BusyError, match=run.id):
        workspace.learning.work(run.id, "test")


def test_trial_tasks_are_sampled_but_never_teach(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8, split="trial"))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url).model_copy(update={"split": "trial"})
        run = learn(workspace, config)
    assert run.tally.informative > 0
    assert workspace.store.proposals.page()[1] == 0
    with pytest.raises(InputError, match="only train tasks teach"):
        workspace.learning.propose(run.id, "test")


def test_without_tasks_the_message_says_what_to_do(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="winnow tasks import"):
        workspace.learning.plan(RunConfig())
    add_tasks(workspace, make_tasks(2))
    with pytest.raises(InputError, match="no trial tasks"):
        workspace.learning.plan(RunConfig(split="trial"))


def test_zero_informative_groups_cost_no_extraction_call(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4))

    def always_wrong(asked: Asked) -> str:
        return "no idea"

    with StubServer(always_wrong) as stub, StubServer() as extractor:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, extractor.base_url, "extractor")
        run = learn(workspace, config.model_copy(update={"extraction_endpoint": "extractor"}))
        assert extractor.stats()["calls"] == 0
    assert run.tally.reasons == {"all wrong": 4}
    assert workspace.store.proposals.page()[1] == 0


def _teacher(asked: Asked) -> str:
    """An extraction model that answers from its prompt."""
    if "semantic_advantages" in asked.system:
        labels = [w for w in ("R1", "R2", "R3", "R4") if w in asked.user]
        advantages = [
            {"rollout": w, "verdict": "better", "why": "short answer", "deciding_step": ""} for w in labels
        ]
        operations = [
            {
                "op": "ADD",
                "ids": [],
                "text": "When asked for a sum, answer with the number alone.",
                "kind": "convention",
            },
            {"op": "update", "ids": ["[E-0099]"], "text": "No such lesson.", "kind": "strategy"},
        ]
        return json.dumps({"semantic_advantages": advantages, "operations": operations})
    return json.dumps(
        {"summary": "Answered at once.", "key_decision": "short", "root_cause": "", "used_experiences": []}
    )


def test_with_an_extraction_endpoint_the_three_stages_run_and_nothing_of_them_is_lost(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer() as stub, StubServer(_teacher) as extractor:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, extractor.base_url, "extractor", context_length=16_000)
        run = learn(workspace, config.model_copy(update={"extraction_endpoint": "extractor"}))
        assert extractor.stats()["calls"] > 0
    made = run.extraction
    assert made.suggested == made.proposed + made.joined + made.superseded + made.quarantined
    texts = [p.operation.text for p in workspace.store.proposals.page()[0] if p.extractor == "llm"]  # type: ignore[union-attr]
    assert texts == ["When asked for a sum, answer with the number alone."]
    assert made.quarantined == run.tally.informative, (
        "each group's update of an unknown id is set aside, never added"
    )
    assert any(r.semantic for r in next(workspace.store.groups.all(run.id, "informative")).rollouts)


def test_an_extraction_endpoint_that_is_down_stops_the_run_and_its_rollouts_are_not_paid_for_again(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer() as stub, StubServer(_teacher, key="a-key-that-is-not-sent") as extractor:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, extractor.base_url, "extractor", context_length=16_000)
        run = workspace.learning.start(config.model_copy(update={"extraction_endpoint": "extractor"}), "test")
        with pytest.raises(ModelUnavailableError):
            workspace.learning.work(run.id, "test")
        assert workspace.store.proposals.page()[1] == 0
        calls = stub.stats()["calls"]
        extractor.key = None
        assert workspace.learning.work(run.id, "test").extraction.proposed > 0
        assert stub.stats()["calls"] == calls


def test_groups_that_an_overloaded_model_could_not_contrast_can_be_made_up_for(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer() as stub, StubServer(_teacher, rates={"5xx": 0.25}) as extractor:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, extractor.base_url, "extractor", context_length=16_000, retries=0)
        run = learn(workspace, config.model_copy(update={"extraction_endpoint": "extractor"}))
        failed = len(run.extraction.not_contrasted)
        assert 0 < failed <= run.tally.informative
        extractor.rates = {}
        calls = stub.stats()["calls"]
        assert workspace.learning.retry(run.id, "test") == failed
        again = workspace.learning.work(run.id, "test")
        assert stub.stats()["calls"] == calls
    assert (again.status, again.extraction.not_contrasted) == ("done", {})
    assert any(p.extractor == "llm" for p in workspace.store.proposals.page(["proposed"])[0])


def test_equal_seeds_and_replies_give_equal_workspaces(tmp_path: Path) -> None:
    dumps = []
    for name in ("one", "two"):
        workspace = Workspace(tmp_path / name, clock=ticking())
        add_tasks(workspace, make_tasks(10))
        with StubServer() as stub:
            config = add_stub(workspace, stub.base_url)
            learn(workspace, config)
            dumps.append(workspace.store.dump().replace(stub.base_url, "address"))
    assert _without_keys(dumps[0]) == _without_keys(dumps[1])


def _without_keys(dump: str) -> list[str]:
    """Cache keys and request hashes hold the address, which has another port in each server."""
    return [line for line in dump.splitlines() if not line.startswith(("calls ", "runs "))]


def test_equal_histories_give_packs_of_equal_bytes_whenever_they_were_made(tmp_path: Path) -> None:
    packs = []
    for name, clock in (("one", ticking()), ("two", lambda: "2031-05-05T05:05:05Z")):
        workspace = Workspace(tmp_path / name, clock=clock)
        publish(workspace, "First lesson.", "Second lesson.")
        packs.append(workspace.shipping.export("pack").data)
    assert packs[0] == packs[1]


def test_calls_before_a_kill_are_not_free(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))

    def stop_at_five(what: str, done: int, total: int) -> None:
        if (what, done) == ("groups", 5):
            raise KeyboardInterrupt

    with StubServer() as stub:
        run = workspace.learning.start(add_stub(workspace, stub.base_url, concurrency=1), "test")
        with pytest.raises(BaseException, match=r"^$|unhandled"):
            workspace.learning.work(run.id, "test", stop_at_five)
        assert workspace.store.runs.get(run.id).spent.calls >= 20
        done = workspace.learning.work(run.id, "test")
        # What was under way when it was killed may not have left yet: it is booked all the same.
        assert stub.stats()["calls"] <= done.spent.calls <= stub.stats()["calls"] + 1


def test_a_run_says_how_many_groups_got_a_lesson(workspace: Workspace) -> None:
    add_tasks(workspace, [*make_tasks(2), make_task(9, domain="other")])
    publish(workspace, "Answer with the number alone.")
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        assert workspace.learning.plan(config).with_lessons == 2
        assert learn(workspace, config).with_lessons == 2


def test_a_cap_on_money_needs_a_price(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url).model_copy(update={"max_cost_usd": 1.0})
        with pytest.raises(InputError, match="has no price"):
            workspace.learning.plan(config)


def test_a_domain_without_lessons_says_how_much_was_contrasted(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
    assert any("sums" in note and "groups" in note for note in run.extraction.notes)
