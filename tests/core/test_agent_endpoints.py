"""Agents on our own way to an endpoint: its cap ends the run, nothing is paid twice; and with the real model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from core import local_model
from core.agent import Agent
from core.errors import BudgetError
from core.llm import Budget
from core.runner import Attempt
from core.sandbox.confined import Confined, cannot
from core.settings import EMBEDDED, AgentConfig, Endpoint, VerifierSpec
from core.workspace import Workspace
from tests.scripted_agent import KEY, PROMPT, SAMPLING, TASK, Reply, Scripted, calls, says

CALLS_A_TOOL = [calls(("list_files", {})), says("4")]


async def attempt(
    workspace: Workspace, name: str, config: AgentConfig, budget: Budget | None = None
) -> Attempt:
    async with workspace.models.access(budget) as access:
        chat = access.chat(name, "rollout")
        agent = Agent(
            config,
            client_for=chat.sdk_client,
            model_name=chat.name,
            context_length=chat.context_length,
            sandbox=Confined("agents"),
        )
        async with agent:
            return await agent.attempt(TASK, PROMPT, SAMPLING, 0)


def scripted(
    workspace: Workspace, script: Sequence[Reply], *budgets: Budget
) -> tuple[list[object], Scripted]:
    """One attempt under each budget, at the same endpoint; an error stands for itself."""

    async def run() -> tuple[list[object], Scripted]:
        async with Scripted(script) as endpoint:
            made = Endpoint(
                name="scripted", base_url=endpoint.base_url, model="scripted", retries=0, price_in=1.0
            )
            workspace.models.save(made, "test")
            config = AgentConfig(tools=("files",))
            tries = [attempt(workspace, "scripted", config, budget) for budget in budgets]
            return [(await asyncio.gather(t, return_exceptions=True))[0] for t in tries], endpoint

    return asyncio.run(run())


def test_a_cap_ends_the_run_and_the_next_start_pays_only_for_what_is_missing(workspace: Workspace) -> None:
    (capped, resumed), endpoint = scripted(workspace, CALLS_A_TOOL, Budget(max_calls=1), Budget())
    assert isinstance(capped, BudgetError)
    assert isinstance(resumed, Attempt)
    assert resumed.trajectory.answer == "4"
    assert resumed.usage.calls == 2
    assert resumed.usage.cost_usd > 0
    assert len(endpoint.requests) == 2, "the first turn was in the cache"


def test_an_endpoint_that_fails_once_breaks_off_one_rollout_only(workspace: Workspace) -> None:
    (broken,), _ = scripted(workspace, [calls(("list_files", {})), Reply("too long", status=400)], Budget())
    assert isinstance(broken, Attempt)
    assert "too long" in (broken.error or "")
    assert [s.tool for s in broken.trajectory.steps] == ["list_files"]
    assert KEY not in (broken.error or "")


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WINNOW_RUNTIME", str(tmp_path / "runtime"))
    monkeypatch.setenv("WINNOW_MODEL_THREADS", "1")
    yield
    local_model.release()


@pytest.mark.skipif(bool(cannot()), reason=cannot())
def test_programs_run_for_real_and_confined_in_the_folder_of_their_rollout(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trust.toml").write_text('run_code = ["agents"]')
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    script = [
        calls(("write_file", {"path": "numbers.txt", "text": "2 2"})),
        calls(("python", {"code": "print(sum(map(int, open('numbers.txt').read().split())))"})),
        calls(("python", {"code": "open('/etc/passwd').read()"})),
        calls(("python", {"code": "import socket; socket.create_connection(('127.0.0.1', 9))"})),
        calls(("python", {"code": "1/0"})),
        says("4"),
    ]

    async def run() -> Attempt:
        async with Scripted(script) as endpoint:
            made = Endpoint(name="scripted", base_url=endpoint.base_url, model="scripted")
            workspace.models.save(made, "test")
            return await attempt(workspace, "scripted", AgentConfig(tools=("files", "python")))

    _, added, read, connected, divided = asyncio.run(run()).trajectory.steps
    assert added.output == "4\n"
    assert (read.success, (read.error or "").split(":")[0]) == (False, "PermissionError")
    assert connected.success is False
    assert divided.error == "ZeroDivisionError: division by zero"


@pytest.mark.model
@pytest.mark.usefixtures("runtime")
def test_the_embedded_model_goes_through_the_agent_path_though_it_calls_no_tools(
    workspace: Workspace,
) -> None:
    """Its chat template has no place for tools, so the server drops them, `tool_choice` "required" or a named function
    included (tried); what can be seen with it is the way there and back, turns, gates, usage and the cache.
    """
    config = AgentConfig(tools=("files",), gates=(VerifierSpec(kind="regex", options={"pattern": "[#]{9}"}),))

    async def twice() -> list[Attempt]:
        return [await attempt(workspace, EMBEDDED, config) for _ in range(2)]

    first, again = asyncio.run(twice())
    assert first.error is None
    assert first.trajectory.answer
    assert first.trajectory.finish_reason == "gate"
    assert [m.role for m in first.trajectory.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert first.usage.calls == 2
    assert first.usage.prompt_tokens > 0
    assert first.usage.completion_tokens > 0
    assert again.trajectory == first.trajectory, "the second time it came from the cache"
