"""The main job on the real embedded model: tasks, rollouts, proposals, a decision, a version, a pack, the next run."""

from __future__ import annotations

import importlib.util
import json
import os

import pytest

from core.demo import run_demo, sample_config, story
from core.errors import InputError, ModelUnavailableError
from core.packs import read_pack
from core.settings import EMBEDDED, RunConfig
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_task, propose
from tests.stub_server import Asked, StubServer

CI = bool(os.environ.get("CI"))


def needs_the_model() -> None:
    """A missing model is a failure in CI and a named skip elsewhere."""
    from core import local_model

    try:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelUnavailableError("xllamacpp is not installed")
        local_model.ensure(local_model.MODEL)
    except ModelUnavailableError as e:
        if CI:
            raise
        pytest.skip(f"the embedded model is not to be had: {e}")


@pytest.mark.model
@pytest.mark.slow
def test_the_embedded_model_answers_is_scored_and_is_injected_with_what_was_published(
    workspace: Workspace,
) -> None:
    needs_the_model()
    workspace.load_sample("test")
    config = sample_config().model_copy(
        update={"group_size": 4, "limit": 2, "domains": ("capitals", "number")}
    )
    assert config.endpoint == EMBEDDED
    run = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
    assert (run.status, run.tally.total, run.tally.failed, run.tally.waiting) == ("done", 4, 0, 0)
    rollouts = [
        r
        for row in workspace.store.groups.page(run.id)[0]
        for r in workspace.store.groups.get(row.id).rollouts
    ]
    assert len(rollouts) == 16
    assert len({r.trajectory.answer for r in rollouts}) > 4, (
        "a real model does not say the same thing each time"
    )
    assert all(r.reward is not None and r.usage.completion_tokens > 0 for r in rollouts)

    [proposal_id] = propose(workspace, "Answer with one short sentence.")
    workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("By hand", "ann")
    again = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
    assert again.id != run.id, "under a new version the same command is a new run"
    stored = workspace.store.groups.get(f"{again.id}-0001").rollouts[0].trajectory.messages[0]
    assert "Answer with one short sentence." not in stored.content, (
        "a lesson on sums is not injected for capitals"
    )

    [general] = propose(workspace, _general("Be brief."))
    workspace.review.approve(general, "ann")
    workspace.review.publish("For all", "ann")
    third = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
    stored = workspace.store.groups.get(f"{third.id}-0001").rollouts[0].trajectory.messages[0]
    assert (stored.role, "[G0] Be brief." in stored.content) == ("system", True)
    pack = read_pack(workspace.shipping.export("pack").data)
    assert sorted(e.text for e in pack.as_experiences()) == ["Answer with one short sentence.", "Be brief."]


def _general(text: str) -> object:
    from core.experience import Add

    return Add(text=text, domain="general")


def _habitual(asked: Asked) -> str:
    """A stand-in for the sample's model: right or long-winded by luck, so that form and content vary together."""
    good = asked.rng.random() < 0.5
    return (
        "Paris."
        if good
        else "Well, I would say that this is a question with many possible answers, is it not?"
    )


@pytest.mark.slow
def test_the_demo_does_everything_once_and_says_it_in_ten_lines(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StubServer(_habitual) as stub:
        add_stub(workspace, stub.base_url, sends_n=True)
        config = sample_config().model_copy(update={"endpoint": "stub"})
        monkeypatch.setattr("core.demo.sample_config", lambda: config)
        done = run_demo(workspace)
        calls = stub.stats()["calls"]
        before = workspace.store.dump()
        again = run_demo(workspace)
        assert stub.stats()["calls"] == calls, "a second start makes no model call"
    assert workspace.store.dump() == before, "a second start changes nothing"
    assert again.version == done.version
    assert done.run.tally.total == 240
    assert done.version.number == 1
    assert done.waiting >= 3
    assert done.pack_verified
    assert {p.decided_by for p in done.approved} == {"winnow demo"}
    lines = story(done, 1.0)
    assert len(lines) == 10
    assert all(len(line) < 160 for line in lines), max(lines, key=len)


def test_the_demo_keeps_out_of_a_workspace_with_tasks_of_ones_own(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1)])
    before = workspace.store.dump()
    with pytest.raises(InputError, match="tasks of your own"):
        run_demo(workspace)
    assert workspace.store.dump() == before


def test_the_sample_is_sampled_as_it_was_measured() -> None:
    assert json.loads(sample_config().canonical())["max_tokens"] == 24
    assert isinstance(sample_config(), RunConfig)
