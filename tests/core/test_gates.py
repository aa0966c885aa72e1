"""Epochs, batches and what happens between them; sampling anew; stopping early."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from core.errors import InputError, StoppedError
from core.rollout import Run
from core.settings import Resample, RunConfig
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_tasks, publish, ticking
from tests.stub_server import Asked, StubServer, solver

LESSON = "When asked for a sum, answer with the number alone."


def learn(workspace: Workspace, config: RunConfig) -> Run:
    return workspace.learning.work(workspace.learning.start(config, "test").id, "test")


def teacher(asked: Asked) -> str:
    """Suggests one and the same lesson after each group."""
    if "semantic_advantages" in asked.system:
        return json.dumps(
            {"semantic_advantages": [], "operations": [{"op": "add", "ids": [], "text": LESSON}]}
        )
    if '"actions"' in asked.system:
        return json.dumps({"actions": []})
    return json.dumps({"summary": "Answered at once."})


def always_wrong(asked: Asked) -> str:
    return "no idea"


def right_when_warm(asked: Asked) -> str:
    """Teaches nothing at the run's own temperature, and something at a higher one."""
    return solver(asked) if asked.body["temperature"] > 0.9 else "no idea"


def gated(workspace: Workspace, stub: StubServer, extractor: StubServer, **settings: object) -> RunConfig:
    config = add_stub(workspace, stub.base_url)
    add_stub(workspace, extractor.base_url, "extractor", context_length=16_000)
    return config.model_copy(update={"extraction_endpoint": "extractor", "batch_size": 4, **settings})


def test_every_task_is_used_once_in_each_epoch_in_another_order(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(7))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url).model_copy(update={"epochs": 3, "batch_size": 3})
        run = learn(workspace, config)
    rows, total = workspace.store.groups.page(run.id)
    assert total == 21
    orders = [[r.task_id for r in rows if r.epoch == epoch] for epoch in range(3)]
    assert all(Counter(order) == Counter(t.id for t in make_tasks(7)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert [(r.epoch, r.batch) for r in rows[:7]] == [(0, 0)] * 3 + [(0, 1)] * 3 + [(0, 2)]


def test_a_second_epoch_asks_anew_and_is_not_answered_from_the_cache(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        learn(workspace, config.model_copy(update={"epochs": 2}))
        assert stub.stats()["calls"] == 2 * 6 * config.group_size


def test_when_an_epoch_brought_nothing_informative_the_next_one_is_not_sampled(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(5))
    with StubServer(always_wrong) as stub:
        config = add_stub(workspace, stub.base_url).model_copy(update={"epochs": 4})
        run = learn(workspace, config)
        assert stub.stats()["calls"] == 5 * config.group_size
    assert run.status == "done"
    assert run.tally.total == 20
    assert run.tally.reasons == {"not sampled: nothing was informative in epoch 1": 15, "all wrong": 5}


@pytest.mark.parametrize("gate", ["none", "auto"])
def test_each_batch_is_consolidated_by_itself(workspace: Workspace, gate: str) -> None:
    add_tasks(workspace, make_tasks(12))
    with StubServer() as stub, StubServer(teacher) as extractor:
        run = learn(workspace, gated(workspace, stub, extractor, gate=gate))
    made = run.extraction
    assert made.suggested == made.proposed + made.joined + made.superseded + made.quarantined
    assert made.suggested >= run.tally.informative, "each informative group suggested one lesson"


def test_the_auto_gate_publishes_after_each_batch_and_the_next_one_is_sampled_with_it(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(12))
    with StubServer() as stub, StubServer(teacher) as extractor:
        config = gated(workspace, stub, extractor, gate="auto")
        run = learn(workspace, config)
        calls = stub.stats()["calls"]
        assert learn(workspace, config).id == run.id, "its own versions do not make it another run"
        assert stub.stats()["calls"] == calls
    first, second, third = workspace.store.runs.batches(run.id)
    assert (first.library_version, first.published_in) == (0, 1)
    assert second.library_version == 1
    assert third.library_version is not None
    assert LESSON in [e.text for e in workspace.store.versions.library(1)]
    later = workspace.store.groups.get(f"{run.id}-0005")
    assert LESSON in later.rollouts[0].trajectory.messages[0].content
    assert "auto gate" in workspace.store.versions.get(1).author


def test_the_auto_gate_leaves_what_a_person_staged_alone(workspace: Workspace) -> None:
    from tests.make import propose

    add_tasks(workspace, make_tasks(8))
    [mine] = propose(workspace, "A lesson that a person wants to think about.")
    workspace.review.approve(mine, "ann")
    with StubServer() as stub, StubServer(teacher) as extractor:
        learn(workspace, gated(workspace, stub, extractor, gate="auto"))
    assert workspace.store.proposals.get(mine).status == "approved"


def test_the_review_gate_waits_for_a_person_and_goes_on_with_what_was_published(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer() as stub, StubServer(teacher) as extractor:
        run = learn(workspace, gated(workspace, stub, extractor, gate="review"))
        assert run.status == "review"
        assert run.tally.waiting == 4, "the second batch waits"
        assert workspace.learning.work(run.id, "test").status == "review", "nobody decided yet"
        for proposal in workspace.store.proposals.page(["proposed"], run_id=run.id)[0]:
            workspace.review.approve(proposal.id, "ann")
        assert workspace.learning.work(run.id, "test").status == "review", "approved is not published yet"
        workspace.review.publish("first", "ann")
        after = workspace.learning.work(run.id, "test")
        for proposal in workspace.store.proposals.page(["proposed"], run_id=run.id)[0]:
            workspace.review.reject(proposal.id, "not now", "ann")
        after = workspace.learning.work(run.id, "test")
    assert after.status == "done"
    assert [b.library_version for b in workspace.store.runs.batches(run.id)] == [0, 1]
    assert after.tally.waiting == 0


def test_an_uninformative_group_is_sampled_anew_as_a_group_of_its_own(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer(right_when_warm) as stub:
        config = add_stub(workspace, stub.base_url).model_copy(
            update={"resample": Resample(temperature=1.2, attempts=2)}
        )
        run = learn(workspace, config)
    rows, total = workspace.store.groups.page(run.id, limit=100)
    first = [r for r in rows if r.attempt == 0]
    assert {r.reason for r in first} == {"all wrong"}, "what was sampled first stays as it was"
    assert len([r for r in rows if r.attempt == 1]) == 8
    assert max(r.attempt for r in rows) <= 2
    assert run.tally.total == total == len(rows)
    assert run.tally.informative > 0
    again = workspace.store.groups.get(f"{run.id}-0001+1")
    assert (again.temperature, again.task_id) == (1.2, workspace.store.groups.get(f"{run.id}-0001").task_id)


def test_a_pause_lets_what_is_in_flight_come_home_and_the_run_goes_on_later(tmp_path: Path) -> None:
    asked = []

    def soon() -> str:
        asked.append(1)
        return "pause" if len(asked) > 10 else "go"

    dumps = []
    for name, wishes in (("calm", None), ("paused", soon)):
        workspace = Workspace(tmp_path / name, clock=ticking())
        add_tasks(workspace, make_tasks(10))
        with StubServer(latency_s=0.005) as stub:
            config = add_stub(workspace, stub.base_url)
            run = workspace.learning.start(config, "test")
            if wishes:
                with pytest.raises(StoppedError):
                    workspace.learning.work(run.id, "test", wishes=wishes)
                stopped = workspace.store.runs.get(run.id)
                assert (stopped.status, stopped.tally.waiting > 0) == ("waiting", True)
                assert stub.stats()["calls"] == stub.stats()["answered"], "nothing was dropped"
            workspace.learning.work(run.id, "test")
            assert stub.stats()["asked_again"] == 0
            dumps.append(workspace.store.dump().replace(stub.base_url, "address"))
    rows = [
        [x for x in dump.splitlines() if not x.startswith(("calls ", "runs ", "events "))] for dump in dumps
    ]
    assert rows[0] == rows[1]


def test_a_stop_at_once_drops_what_is_in_flight(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(4))
    with StubServer(latency_s=30) as stub:
        run = workspace.learning.start(add_stub(workspace, stub.base_url), "test")
        with pytest.raises(StoppedError, match="at once"):
            workspace.learning.work(
                run.id, "test", wishes=lambda: "now" if stub.stats()["in_flight"] else "go"
            )
    assert workspace.store.runs.get(run.id).status == "waiting"


def test_a_cancelled_run_keeps_what_it_had_or_discards_it(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        done = learn(workspace, config)
        with pytest.raises(InputError, match="is done"):
            workspace.learning.cancel(done.id, "ann", discard=False)
        half = workspace.learning.start(config.model_copy(update={"seed": 1, "max_calls": 8}), "test")
        with pytest.raises(Exception, match="cap"):
            workspace.learning.work(half.id, "test")
    kept = workspace.learning.cancel(half.id, "ann", discard=False)
    assert (kept.status, kept.tally.total) == ("cancelled", 6)
    gone = workspace.learning.cancel(half.id, "ann", discard=True)
    assert (gone.status, gone.tally.total) == ("cancelled", 0)
    assert workspace.store.runs.get(done.id).tally.total == 6, "another run is not touched"
    assert "run.discarded" in [e.kind for e in workspace.store.events.newest(subject=half.id)]


def test_what_was_published_from_a_run_keeps_it_from_being_discarded(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(8))
    with StubServer() as stub, StubServer(teacher) as extractor:
        run = learn(workspace, gated(workspace, stub, extractor, gate="review"))
    for proposal in workspace.store.proposals.page(["proposed"], run_id=run.id)[0]:
        workspace.review.approve(proposal.id, "ann")
    with pytest.raises(InputError, match="cannot be discarded"):
        workspace.learning.cancel(run.id, "ann", discard=True)
    assert workspace.store.runs.get(run.id).status == "review"


def test_a_gate_needs_train_tasks(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2, split="trial"))
    publish(workspace, "A lesson.")
    with pytest.raises(InputError, match="only train tasks teach"):
        workspace.learning.plan(RunConfig(gate="auto", split="trial"))


def test_a_group_that_a_bad_reply_kept_from_teaching_is_asked_about_anew(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    manners = {"good": False}

    def moody(asked: Asked) -> str:
        if "semantic_advantages" in asked.system and not manners["good"]:
            return "I would rather not."
        return teacher(asked)

    with StubServer() as stub, StubServer(moody) as extractor:
        run = learn(workspace, gated(workspace, stub, extractor, gate="none"))
        assert len(run.extraction.not_contrasted) == run.tally.informative > 0
        manners["good"] = True
        workspace.learning.retry(run.id, "test")
        again = workspace.learning.work(run.id, "test")
    assert again.extraction.not_contrasted == {}
    assert again.extraction.proposed > 0


def test_every_proposal_of_either_extractor_has_its_evidence_and_links_to_rollouts(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(24))
    with StubServer() as stub, StubServer(teacher) as extractor:
        run = learn(workspace, gated(workspace, stub, extractor, gate="none", batch_size=40))
    proposals, _ = workspace.store.proposals.page(run_id=run.id, limit=100)
    assert {p.extractor for p in proposals} >= {"llm"}
    for proposal in proposals:
        evidence = proposal.evidence
        assert evidence.sentence, "counts, or the plain statement that none speaks of it"
        assert evidence.group_ids
        assert evidence.rollout_ids
        stored = {workspace.store.groups.rollout(i).group_id for i in evidence.rollout_ids}
        assert stored <= {f"{run.id}-{n:04d}" for n in range(1, 25)}
    [ours] = [p for p in proposals if p.extractor == "llm"]
    assert ours.evidence.findings, "the lesson speaks of a number alone, and that is counted"
    assert all(0 < f.p_corrected <= 1 and f.odds_ratio > 0 for f in ours.evidence.findings)


def test_a_discarded_run_is_not_gone_on_with(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        gone = workspace.learning.start(config, "test")
        workspace.learning.cancel(gone.id, "ann", discard=True)
        again = learn(workspace, config)
    assert (again.id, again.status, again.tally.total) == ("R2", "done", 3)


def test_a_run_credits_the_lessons_that_it_was_given_and_the_next_version_shows_it(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(12))
    publish(workspace, "Answer with the number alone.")
    before = workspace.store.versions.library().experiences["E-0001"]
    with StubServer() as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url))
    pending = workspace.store.credits.pending()
    assert pending
    assert {c.source.partition("-")[0] for c in pending} == {run.id}
    assert workspace.store.versions.library().experiences["E-0001"] == before, "a version never changes"
    publish(workspace, "Another lesson, for another day.")
    after = workspace.store.versions.library().experiences["E-0001"]
    assert after.uses > before.uses
    assert after.wins <= after.uses
    assert workspace.store.credits.pending() == []
