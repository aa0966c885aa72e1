"""The Python tool: a program of the agent's, run confined in the folder of its rollout."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import ConfigDict, Field

from core.agent.scratch import Scratch
from core.agent.tool import Done, Tool, ToolError, read_arguments, schema_of
from core.ports import Limits, Program, Ran, Sandbox
from core.record import Record

TIME_S = 30.0
"""Seconds that one program may take, if the rollout has as many left."""

_OVERHEAD_S = 0.5
"""Seconds that starting and stopping a program takes: it should end by itself before the rollout does."""


class _Arguments(Record):
    model_config = ConfigDict(strict=True)

    code: str = Field(min_length=1, max_length=200_000, description="A whole Python program.")


def python_tool(sandbox: Sandbox, scratch: Scratch) -> Tool:
    """Runs code in the sandbox.

    Its call raises SandboxError where this machine cannot confine code: that ends the run, since no rollout could
    do what was asked.
    """

    def run(code: str, time_s: float) -> Ran:
        # The folder outlives a rollout that is given up while its program still runs in this thread.
        with scratch.held() as folder:
            return sandbox.run(Program(code=code, folder=str(folder), limits=Limits(time_s=time_s)))

    async def call(parameters: dict[str, Any], left_s: float) -> Done:
        code = read_arguments(_Arguments, parameters).code
        time_s = max(0.1, min(TIME_S, left_s - _OVERHEAD_S))
        ran = await asyncio.to_thread(run, code, time_s)
        shown = _shown(ran)
        if ran.ended == "done":
            return Done(shown)
        raise ToolError(_reason(ran, time_s), shown)

    description = (
        "Run a Python program and get what it prints. It starts afresh each time, in your working folder, whose files "
        "stay; it has no network. Print what you want to see."
    )
    return Tool("python", description, schema_of(_Arguments), call)


def _shown(ran: Ran) -> str:
    if ran.stderr.strip():
        return f"{ran.stdout}\n[standard error]\n{ran.stderr}".lstrip("\n")
    return ran.stdout or "(It printed nothing.)"


def _reason(ran: Ran, time_s: float) -> str:
    match ran.ended:
        case "time":
            return f"TimeoutError: the program was stopped after {time_s:g} s"
        case "memory":
            return "MemoryError: the program was stopped at its memory limit"
        case "output":
            return "the program was stopped because it printed too much"
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"the program ended with exit code {ran.exit_code}"
