"""Runs of agents: sampled, scored by their preset, counted, stored step by step, and refused where they may not act."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError, TrustError
from core.rollout import Run
from core.sandbox.confined import cannot
from core.settings import AgentConfig, Endpoint, RewardConfig, RunConfig, VerifierSpec
from core.workspace import Workspace
from tests.make import add_tasks, make_tasks
from tests.scripted_agent import Reply, Scripted, calls, says

CODE = "import re\nprint(sum(map(int, re.findall(r'\\d+', {!r}))))"


class Adder(Scripted):
    """With an even seed it computes a sum with its tool, after a first try that fails; else it guesses."""

    def choose(self, request: dict[str, Any], number: int) -> Reply:
        question = next(m["content"] for m in request["messages"] if m["role"] == "user")
        said = [m for m in request["messages"] if m["role"] == "tool"]
        if request["seed"] % 2:
            return says("7")
        if not said:
            return calls(("python", {"code": "raise ValueError('no sum yet')"}))
        if len(said) == 1:
            return calls(("python", {"code": CODE.format(question)}))
        return says(re.findall(r"\d+", said[-1]["content"])[-1])


def learn(workspace: Workspace, config: RunConfig, *, times: int = 1) -> tuple[Run, list[int]]:
    """Start a run so many times; gives how many requests there had been after each."""
    add_tasks(workspace, make_tasks(6))

    async def main() -> tuple[Run, list[int]]:
        asked = []
        async with Adder([]) as endpoint:
            made = Endpoint(name="agent", base_url=endpoint.base_url, model="adder", context_length=16_000)
            workspace.models.save(made, "test")
            for _ in range(times):
                run = workspace.learning.start(config, "test")
                run = await asyncio.to_thread(workspace.learning.work, run.id, "test")
                asked.append(len(endpoint.requests))
        return run, asked

    return asyncio.run(main())


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    trust = tmp_path / "trust.toml"
    trust.write_text('run_code = ["agents"]\n')
    monkeypatch.setenv("WINNOW_TRUST", str(trust))
    return trust


AGENT = RunConfig(
    endpoint="agent",
    group_size=4,
    agent=AgentConfig(tools=("python",), instructions="Use your tool."),
    reward=RewardConfig(preset="agent"),
)


@pytest.mark.skipif(bool(cannot()), reason="code cannot be confined here")
def test_a_run_of_agents_stores_every_step_and_learns_from_them(workspace: Workspace, allowed: Path) -> None:
    run, asked = learn(workspace, AGENT)
    assert (run.status, run.tally.informative) == ("done", 6)
    group = workspace.store.groups.get(f"{run.id}-0001")
    computed, guessed = group.rollouts[0], group.rollouts[1]
    assert [(s.tool, s.success) for s in computed.trajectory.steps] == [("python", False), ("python", True)]
    assert "no sum yet" in computed.trajectory.steps[0].output + (computed.trajectory.steps[0].error or "")
    assert all(s.duration_s is not None for s in computed.trajectory.steps)
    assert guessed.trajectory.steps == ()
    assert computed.components["verified"] == 1.0
    assert computed.components["tools"] == 0.5
    assert computed.advantage is not None
    assert guessed.advantage is not None
    assert computed.advantage > 0 > guessed.advantage
    assert computed.usage.calls == 3
    assert asked == [run.spent.calls] == [6 * (2 * 3 + 2)]
    texts = [p.operation.text for p in workspace.store.proposals.page(run_id=run.id)[0]]  # type: ignore[union-attr]
    assert any("python" in text for text in texts), texts


@pytest.mark.skipif(bool(cannot()), reason="code cannot be confined here")
def test_the_same_run_of_agents_again_asks_nothing(workspace: Workspace, allowed: Path) -> None:
    run, asked = learn(workspace, AGENT, times=2)
    assert (run.id, asked[0]) == ("R1", asked[1])


def test_a_tool_that_this_machine_does_not_allow_is_refused_before_anything_is_asked(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "none.toml"))
    add_tasks(workspace, make_tasks(2))
    workspace.models.save(Endpoint(name="agent", base_url="http://127.0.0.1:1/v1", model="m"), "test")
    with pytest.raises(TrustError, match="run_code"):
        workspace.learning.start(AGENT, "test")
    unknown = AGENT.model_copy(update={"agent": AgentConfig(tools=("telepathy",))})
    with pytest.raises(InputError, match="no tool 'telepathy'"):
        workspace.learning.start(unknown, "test")
    judged = RunConfig(
        endpoint="agent",
        reward=RewardConfig(
            verifiers={"nice": VerifierSpec(kind="judge", options={"rubric": "Is it nice?"})}
        ),
    )
    with pytest.raises(InputError, match="cannot judge here"):
        workspace.learning.start(judged, "test")
    assert workspace.store.runs.count() == 0
