"""MCP servers: started once, restarted when they die, and given nothing that the trust file does not name."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.agent import Agent
from core.agent.servers import Server, server_tools
from core.errors import InputError
from core.runner import Attempt
from core.settings import AgentConfig
from core.trust import McpServer
from tests.scripted_agent import PROMPT, SAMPLING, TASK, attempted, calls, says

PROGRAM = Path(__file__).parents[1] / "mcp_server.py"
NOTES = AgentConfig(tools=("mcp:notes",))


def trusting(tmp_path: Path, *lines: str) -> dict[str, str]:
    """An environment whose trust file has a server `notes`; it also holds a key that the server must not get."""
    file = tmp_path / "trust.toml"
    file.write_text("\n".join(["[mcp.notes]", *lines]))
    return {**os.environ, "WINNOW_TRUST": str(file), "MCP_TOKEN": "token-of-the-notes-server"}


def stdio(tmp_path: Path, *lines: str) -> dict[str, str]:
    return trusting(tmp_path, f'command = ["{sys.executable}", "{PROGRAM}"]', *lines)


def test_a_server_on_standard_input_is_called_and_its_failures_are_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-developer")
    environ = stdio(tmp_path, 'environment = ["MCP_TOKEN"]')
    attempt, endpoint = attempted(
        [
            calls(("notes__add", {"a": 2, "b": 2}), ("notes__refuse", {"why": "not today"})),
            calls(("notes__add", {"a": "x"}), ("notes__variables", {})),
            calls(("notes__hostile", {"size": 1_000_000})),
            says("4"),
        ],
        NOTES,
        environ=environ,
    )
    added, refused, wrong, variables, hostile = attempt.trajectory.steps
    assert (added.output, added.success) == ("4", True)
    assert (refused.success, refused.error) == (False, "Error executing tool refuse: not today")
    assert wrong.success is False
    assert "validation error" in (wrong.error or "")
    assert "MCP_TOKEN" in variables.output
    assert "OPENAI_API_KEY" not in variables.output
    assert "token-of-the-notes-server" not in attempt.trajectory.canonical()
    assert variables.output.endswith("and [key]")
    assert len(hostile.output) < 17_000
    assert "\x1b" not in hostile.output
    offered = {t["function"]["name"]: t["function"] for t in endpoint.requests[0]["tools"]}
    assert set(offered["notes__add"]["parameters"]["properties"]) == {"a", "b"}
    assert attempt.trajectory.finish_reason == "stop"


@pytest.mark.slow
def test_a_server_that_dies_fails_one_call_and_is_there_again_for_the_next(tmp_path: Path) -> None:
    async def several(agent: Agent) -> list[Attempt]:
        first = await agent.attempt(TASK, PROMPT, SAMPLING, 0)
        pid = int(first.trajectory.steps[0].output)
        os.kill(pid, signal.SIGKILL)
        return [first, await agent.attempt(TASK, PROMPT, SAMPLING, 1)]

    one = [calls(("notes__pid", {})), calls(("notes__pid", {})), says("4")]
    two = [calls(("notes__pid", {})), calls(("notes__pid", {})), says("4")]
    attempts, _ = attempted([*one, *two], NOTES, environ=stdio(tmp_path), also=several)
    before, after = (a.trajectory.steps for a in attempts)
    assert before[0].output == before[1].output, "one server for the whole run"
    assert after[0].error
    assert after[0].error.startswith("ConnectionError: the server notes was lost")
    assert after[1].success
    assert after[1].output != before[0].output
    assert attempts[1].error is None


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_of_a_call_does_not_make_it_wait(tmp_path: Path) -> None:
    script = [calls(("notes__die", {})), calls(("notes__add", {"a": 1, "b": 3})), says("4")]
    attempt, _ = attempted(script, NOTES, environ=stdio(tmp_path))
    died, added = attempt.trajectory.steps
    assert died.success is False
    assert (died.duration_s or 99) < 10
    assert added.output == "4"


def test_a_call_that_takes_too_long_is_a_failed_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.agent.servers.CALL_S", 0.3)
    script = [calls(("notes__wait", {"seconds": 2})), says("4")]
    attempt, _ = attempted(script, NOTES, environ=stdio(tmp_path))
    (step,) = attempt.trajectory.steps
    assert step.error == "TimeoutError: notes did not answer within 0.3 s"
    assert attempt.trajectory.finish_reason == "stop"


def test_a_server_that_cannot_be_started_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The MCP server 'notes' could not be used: it could not be started"):
        attempted([says("4")], NOTES, environ=trusting(tmp_path, 'command = ["no-such-program-here"]'))
    with pytest.raises(InputError, match="MISSING"):
        attempted([says("4")], NOTES, environ=stdio(tmp_path, 'environment = ["MISSING"]'))


@pytest.fixture
def over_http() -> Iterator[tuple[int, list[subprocess.Popen[bytes]]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [serve(port)]
    yield port, started
    for process in started:
        process.kill()
        process.wait()


def serve(port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, str(PROGRAM), "http", str(port)])
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    raise AssertionError("the server did not start")


@pytest.mark.slow
def test_a_server_over_http_is_called_and_may_be_started_anew(
    tmp_path: Path, over_http: tuple[int, list[subprocess.Popen[bytes]]]
) -> None:
    port, started = over_http

    async def with_a_restart(agent: Agent) -> list[Attempt]:
        first = await agent.attempt(TASK, PROMPT, SAMPLING, 0)
        started[0].kill()
        await asyncio.to_thread(started[0].wait)
        lost = await agent.attempt(TASK, PROMPT, SAMPLING, 1)
        started.append(await asyncio.to_thread(serve, port))
        return [first, lost, await agent.attempt(TASK, PROMPT, SAMPLING, 2)]

    script = [calls(("notes__add", {"a": 2, "b": 2})), says("4")] * 3
    environ = trusting(tmp_path, f'url = "http://127.0.0.1:{port}/mcp"', 'key_variable = "MCP_TOKEN"')
    attempts, _ = attempted(script, NOTES, environ=environ, also=with_a_restart)
    first, lost, again = (a.trajectory.steps[0] for a in attempts)
    assert first.output == again.output == "4"
    assert lost.success is False
    assert (lost.duration_s or 99) < 20
    assert (lost.error or "").startswith("ConnectionError: the server notes was lost")
    assert [a.error for a in attempts] == [None] * 3


def test_tools_of_two_servers_never_share_a_name() -> None:
    def server(name: str, *tools: str) -> Server:
        made = Server(name, McpServer(command=("x",)), {})
        made.tools = [
            cast(Any, SimpleNamespace(name=t, description=None, inputSchema={"type": "object"}))
            for t in tools
        ]
        return made

    servers = [server("a", "b__c", "d.e", "d e", "x" * 80, "x" * 90), server("a__b", "c"), server("python")]
    names = [tool.name for tool in server_tools(servers, taken=["a__d_e"])]
    assert len(set(names)) == 6
    assert "a__d_e" not in names
    assert all(len(name) <= 64 for name in names)
