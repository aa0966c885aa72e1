"""Agent: attempts at tasks with tools, for one run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, Self

from core.agent.course import Course
from core.agent.fetch import Fetch
from core.agent.files import file_tools
from core.agent.python import python_tool
from core.agent.scratch import Scratch
from core.agent.servers import Server, server_tools
from core.agent.tool import MAX_ERROR, Tool, bounded, clean
from core.errors import BudgetError, InputError, ModelUnavailableError, StoppedError, WinnowError
from core.ports import Sampling, Sandbox
from core.rollout import Message, Task, Trajectory, Usage
from core.runner import Attempt
from core.settings import AgentConfig, VerifierSpec
from core.trust import check_code, mcp_server
from core.verifiers import Guarded, make_verifier

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_MCP = "mcp:"

_ENDS_THE_RUN = (BudgetError, ModelUnavailableError, StoppedError, InputError)
"""What no rollout of the run could do anything about. The run ends, and goes on from there when it is resumed."""


class Client(Protocol):
    """How one rollout reaches the endpoint (`core.llm.sdk.SdkClient`)."""

    client: AsyncOpenAI
    """Its transport does the seed, the budget, the cache, retries and rate limits."""
    usage: Usage
    """What its calls took so far."""
    error: WinnowError | None
    """What stopped the last request, before the SDKs wrapped it."""

    async def aclose(self) -> None: ...


class ClientFor(Protocol):
    """Makes the client of one rollout (`core.llm.OpenAIChat.sdk_client`)."""

    def __call__(self, *, seed: int, replicate: int, attempt: int) -> Client: ...


class Agent:
    """Attempts tasks with tools; an async context manager, one for each run.

    An attempt ends with `Trajectory.finish_reason` "stop"; "step limit", "time limit" or "length" (the context is
    full, or the answer was cut), each with the best answer so far; or "gate" where the answer was not let through.
    A gate is a verifier that needs no right answer: it sees what would be there in use, so that nothing leaks.
    """

    def __init__(
        self,
        config: AgentConfig,
        *,
        client_for: ClientFor,
        model_name: str,
        context_length: int,
        sandbox: Sandbox | None = None,
        verifier: Callable[[VerifierSpec], Guarded] = make_verifier,
        environ: Mapping[str, str] = os.environ,
        fetch_also: Collection[str] = frozenset(),
        at_once: int = 8,
    ) -> None:
        """Check that all tools may be used here; nothing is started yet.

        Args:
            config: tools, limits, gates.
            client_for: the client of one rollout.
            model_name: as the endpoint knows it.
            context_length: tokens of prompt and reply together.
            sandbox: runs the Python tool's programs.
            verifier: builds the gates.
            environ: where the trust file, and what MCP servers need, are looked up.
            fetch_also: addresses that `fetch` may ask though they are not public; for tests.
            at_once: attempts under way at most: no more than the endpoint has places, so that no attempt's time is
                spent in a queue of ours.

        Raises:
            TrustError: this machine's owner does not allow a tool; the sentence says how to.
            InputError: there is no such tool, or a gate cannot be used.
        """
        self._config = config
        self._client_for = client_for
        self._model_name = model_name
        self._context_length = context_length
        self._sandbox = sandbox
        self._servers: list[Server] = []
        self._fetch: Fetch | None = None
        for name in dict.fromkeys(config.tools):
            if name == "python":
                check_code("agents", environ)
                if sandbox is None:
                    raise InputError("The tool 'python' needs a sandbox, and this machine has none.")
            elif name == "fetch":
                self._fetch = Fetch(config.fetch_hosts, also=fetch_also)
            elif name.startswith(_MCP):
                server = name.removeprefix(_MCP)
                self._servers.append(Server(server, mcp_server(server, environ), environ))
            elif name != "files":
                raise InputError(f"There is no tool {name!r}; use python, fetch, files or mcp:NAME.")
        self._gates: list[tuple[str, Guarded]] = []
        for spec in config.gates:
            gate = verifier(spec)
            if trouble := gate.trouble(Task(id="gate", question="?", verifier=spec)):
                raise InputError(
                    f"The gate {spec.kind!r} cannot be used: {trouble}; a gate is not told the right answer."
                )
            self._gates.append((spec.kind, gate))
        self._running = AsyncExitStack()
        self._seats = asyncio.Semaphore(at_once)

    async def __aenter__(self) -> Self:
        """Start the MCP servers.

        Raises:
            InputError: one of them cannot be started.
        """
        from core.agent import sdk

        sdk.silence()
        async with AsyncExitStack() as starting:
            if self._fetch is not None:
                await starting.enter_async_context(self._fetch)
            for server in self._servers:
                starting.push_async_callback(server.stop)
                await server.start()
            self._running = starting.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()

    async def attempt(
        self, task: Task, messages: Sequence[Message], sampling: Sampling, replicate: int, attempt: int = 0
    ) -> Attempt:
        """One attempt at a task. What goes wrong in it is told in its result.

        Args:
            task: for the gates.
            messages: the prompt: instructions and lessons, and the question.
            sampling: how each reply is asked for; its `max_tokens` are those of one reply.
            replicate: which of the group's attempts it is.
            attempt: a higher number asks for fresh replies.

        Raises:
            BudgetError: the cap of the run would be passed.
            ModelUnavailableError: the endpoint cannot be used at all.
            StoppedError: somebody wants the work to stop.
            InputError: a key is not set, or (SandboxError) code cannot be confined here.
        """
        async with self._seats:
            return await self._attempt(task, messages, sampling, replicate, attempt)

    async def _attempt(
        self, task: Task, messages: Sequence[Message], sampling: Sampling, replicate: int, attempt: int
    ) -> Attempt:
        from core.agent import sdk

        scratch = Scratch()
        client = self._client_for(seed=sampling.seed, replicate=replicate, attempt=attempt)
        try:
            tools = self._tools(scratch)
            course = Course(self._config, tools, messages, self._context_length)
            error: str | None = None
            reason: str | None = None
            try:
                async with asyncio.timeout_at(course.ends_at) as clock:
                    through = await sdk.converse(
                        course,
                        tools,
                        messages,
                        client.client,
                        self._model_name,
                        sampling,
                        lambda answer: self._objection(task, answer),
                    )
                reason = (course.limit or ("length" if course.cut else "stop")) if through else "gate"
            except Exception as e:
                behind = course.fatal or client.error or sdk.ours(e)
                if isinstance(behind, _ENDS_THE_RUN):
                    raise behind from e
                if clock.expired() and not course.answered:
                    error = f"The model gave no reply within {self._config.time_limit_s:g} seconds."
                elif clock.expired():
                    reason = "time limit"
                else:
                    error = _sentence(behind or e)
            return Attempt(course.trajectory(reason), client.usage, error, course.duration_s)
        finally:
            scratch.close()
            await client.aclose()

    def _tools(self, scratch: Scratch) -> list[Tool]:
        """The tools of one rollout, in the order of the configuration."""
        tools: list[Tool] = []
        for name in dict.fromkeys(self._config.tools):
            if name == "python" and self._sandbox is not None:
                tools.append(python_tool(self._sandbox, scratch))
            elif name == "fetch" and self._fetch is not None:
                tools.append(self._fetch.tool)
            elif name == "files":
                tools += file_tools(scratch)
        return tools + server_tools(self._servers, [tool.name for tool in tools])

    async def _objection(self, task: Task, answer: str) -> str:
        """Why a gate does not let an answer through; empty where all do."""
        blind = task.model_copy(update={"answer": None})
        for kind, gate in self._gates:
            score = await gate.score(blind, Trajectory(answer=answer))
            if score.value != 1:
                why = score.reason or f"it gave {score.value}"
                return f"Your answer was not let through by the check {kind!r}: {why}. Give your whole answer again."
        return ""


def _sentence(error: Exception) -> str:
    text = bounded(clean(" ".join(str(error).split())), MAX_ERROR)
    return (
        text
        if isinstance(error, WinnowError) and text
        else f"{type(error).__name__}: {text or 'no reason was given'}."
    )
