"""One task is tried before a run: what comes of it is shown, and nothing but replies is kept."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.errors import InputError, TrustError
from core.settings import AgentConfig
from core.workspace import Workspace
from core.workspace.rehearsing import begin, forget, key_of, rehearse, standing
from tests.make import add_stub, add_tasks, make_tasks
from tests.stub_server import Fault, StubServer


def test_one_task_is_sampled_and_scored_as_the_run_would(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        found = rehearse(workspace.store, workspace.models, config)
    assert found.task == workspace.learning.plan(config).tasks[0]
    assert len(found.group.rollouts) == 4
    assert all(r.outcome == "scored" for r in found.group.rollouts)
    assert (found.sent.calls, found.prompt_tokens > 0) == (4, True)


def test_a_rehearsal_writes_no_run_down_and_the_run_does_not_pay_for_it_again(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(2))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        rehearse(workspace.store, workspace.models, config)
        assert (workspace.store.runs.count(), workspace.store.groups.count_rollouts()) == (0, 0)
        run = workspace.learning.start(config, "ann")
        done = workspace.learning.work(run.id, "ann")
    assert (done.status, done.spent.calls) == ("done", 4), "one of two tasks was paid for already"


def test_rollouts_that_broke_off_are_shown_with_their_reason(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer(faults=[Fault("status", 400, message="no such thing")] * 9) as stub:
        config = add_stub(workspace, stub.base_url, retries=0)
        found = rehearse(workspace.store, workspace.models, config)
    assert found.group.status == "failed"
    assert "no such thing" in str(found.group.rollouts[0].error)


def test_an_agent_is_tried_with_its_tools(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url).model_copy(
            update={"agent": AgentConfig(tools=("files",))}
        )
        found = rehearse(workspace.store, workspace.models, config)
    assert all(r.error is None for r in found.group.rollouts)


def test_a_task_that_the_run_does_not_have_is_refused(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer() as stub, pytest.raises(InputError, match="no task 'other'"):
        rehearse(workspace.store, workspace.models, add_stub(workspace, stub.base_url), "other")


def test_a_reader_may_not_ask_a_model(tmp_path: Path, workspace: Workspace) -> None:
    with StubServer() as stub, pytest.raises(TrustError):
        begin(workspace.folder, "key", add_stub(workspace, stub.base_url), "reader")
    assert standing(workspace.folder, "key").state == "none"


@pytest.mark.slow
def test_a_rehearsal_in_a_process_of_its_own_is_found_by_its_key(tmp_path: Path) -> None:
    ws = Workspace(tmp_path / "workspace")
    add_tasks(ws, make_tasks(1))
    with StubServer() as stub:
        config = add_stub(ws, stub.base_url)
        key = key_of(ws.learning.plan(config))
        begin(ws.folder, key, config, "reviewer")
        assert standing(ws.folder, key).state == "running"
        until = time.monotonic() + 60
        while standing(ws.folder, key).state == "running" and time.monotonic() < until:
            time.sleep(0.05)
    now = standing(ws.folder, key)
    assert (now.state, now.trouble) == ("done", "")
    assert now.found is not None
    assert len(now.found.group.rollouts) == 4
    forget(ws.folder, key)
    assert standing(ws.folder, key).state == "none"


@pytest.mark.slow
def test_what_a_rehearsal_cannot_do_is_one_sentence(tmp_path: Path) -> None:
    ws = Workspace(tmp_path / "workspace")
    with StubServer() as stub:
        begin(ws.folder, "key", add_stub(ws, stub.base_url), "publisher")  # there are no tasks
        until = time.monotonic() + 60
        while standing(ws.folder, "key").state == "running" and time.monotonic() < until:
            time.sleep(0.05)
    assert standing(ws.folder, "key").trouble.startswith("There are no tasks yet")
    forget(ws.folder, "key")
