"""Commands in a process of their own: the web process waits for a while, and never for a model."""

from __future__ import annotations

import socket

import pytest

from core.errors import BusyError, InputError, TrustError
from core.roles import Role
from core.settings import Endpoint
from core.workspace import Workspace
from core.workspace.aside import run_aside
from core.workspace.trying import try_endpoint
from tests.stub_server import StubServer

pytestmark = pytest.mark.slow  # each starts a Python


def test_a_command_gives_what_it_says(workspace: Workspace) -> None:
    assert run_aside(workspace.folder, "doctor", within_s=60, role="reader")["findings"] == []


def test_a_refusal_is_the_commands_own_sentence(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="no endpoint 'nobody'"):
        run_aside(workspace.folder, "endpoints", "test", "nobody", within_s=60, role="reviewer")


def test_an_endpoint_that_answers_is_told_with_what_it_can_do(workspace: Workspace) -> None:
    with StubServer() as stub:
        workspace.models.save(Endpoint(name="stub", base_url=stub.base_url, model="stub-model"), "ann")
        trial = try_endpoint(workspace.folder, "stub", "reviewer", 60)
    assert trial.works
    assert trial.said.startswith("stub answered as stub-model")
    assert [what for what, _ in trial.can] == ["several replies to a request", "seeds", "JSON schemas"]


def test_one_that_never_answers_is_given_up_in_time(workspace: Workspace) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        workspace.models.save(Endpoint(name="mute", base_url=url, model="m"), "ann")
        trial = try_endpoint(workspace.folder, "mute", "reviewer", 4)
    assert not trial.works
    assert "did not answer within 4 s" in trial.said


def test_a_command_that_takes_too_long_is_ended(workspace: Workspace) -> None:
    with pytest.raises(BusyError, match="in a terminal"):
        run_aside(workspace.folder, "worker", within_s=3, role="publisher")


@pytest.mark.parametrize(("command", "role"), [("backup", "reviewer"), ("endpoints", "reader")])
def test_who_may_not_have_it_done_is_refused_before_anything_runs(
    workspace: Workspace, command: str, role: Role
) -> None:
    with pytest.raises(TrustError, match=f"A {role} may not do this \\({command}\\)"):
        run_aside(workspace.folder, command, within_s=60, role=role)
    assert not (workspace.folder / "backups").exists()
