"""An endpoint whose replies, tool calls included, are written down beforehand; and what an agent needs besides it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.agent import Agent
from core.errors import WinnowError
from core.ports import Program, Ran, Sampling
from core.rollout import Message, Task, Usage
from core.runner import Attempt
from core.settings import AgentConfig

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class Reply:
    """One reply of the model, or, with a status, a refusal."""

    text: str | None = None
    calls: Sequence[tuple[str, Any]] = ()
    """Name and arguments of each call; arguments that are a string are sent as they stand."""
    tokens: int = 5
    finish: str | None = None
    status: int = 200
    delay_s: float = 0.0

    def body(self, number: int) -> bytes:
        if self.status != 200:
            return json.dumps({"error": {"message": self.text, "type": "x", "code": None}}).encode()
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": f"their-{number}",  # the same for all calls of a reply, as careless servers do
                    "type": "function",
                    "function": {"name": n, "arguments": a if isinstance(a, str) else json.dumps(a)},
                }
                for n, a in self.calls
            ]
        finish = self.finish or ("tool_calls" if self.calls else "stop")
        usage = {"prompt_tokens": 10, "completion_tokens": self.tokens, "total_tokens": 10 + self.tokens}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        base = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted"}
        return json.dumps({**base, "choices": [choice], "usage": usage}).encode()


def says(text: str, **more: Any) -> Reply:
    return Reply(text, **more)


def calls(*named: tuple[str, Any], text: str | None = None, **more: Any) -> Reply:
    return Reply(text, named, **more)


@dataclass
class Scripted:
    """Serves the replies in order, the last one for ever; keeps the requests."""

    script: Sequence[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    base_url: str = ""

    async def __aenter__(self) -> Scripted:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def choose(self, request: dict[str, Any], number: int) -> Reply:
        """The reply to the request that came as the nth."""
        return self.script[min(number, len(self.script)) - 1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(h.split(":")[1]) for h in head.lower().split("\r\n") if h.startswith("content-length")
            )
            self.headers.append(head)
            self.requests.append(json.loads(await reader.readexactly(length)))
            number = len(self.requests)
            reply = self.choose(self.requests[-1], number)
            await asyncio.sleep(reply.delay_s)
            body = reply.body(number)
            top = f"HTTP/1.1 {reply.status} X\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(f"{top}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@dataclass
class FakeSandbox:
    """Answers programs by a function; keeps them."""

    answer: Callable[[Program], Ran] = lambda program: Ran(
        ended="done", exit_code=0, stdout=f"ran {program.code}"
    )
    programs: list[Program] = field(default_factory=list)

    @property
    def confines(self) -> str:
        return "nothing is run"

    def run(self, program: Program) -> Ran:
        self.programs.append(program)
        return self.answer(program)


@dataclass
class PlainClient:
    """Asks the script directly, as `core.llm.sdk.SdkClient` would through its line."""

    client: Any
    endpoint: Scripted
    error: WinnowError | None = None

    @property
    def usage(self) -> Usage:
        return Usage(calls=len(self.endpoint.requests))

    async def aclose(self) -> None:
        await self.client.close()


TASK = Task(id="T1", question="What is 2 + 2?", answer="4")
PROMPT = (Message(role="system", content="Use your tools."), Message(role="user", content=TASK.question))
SAMPLING = Sampling(max_tokens=100)


def attempted(
    script: Sequence[Reply],
    config: AgentConfig,
    *,
    http_client: Any = None,
    task: Task = TASK,
    sampling: Sampling = SAMPLING,
    also: Callable[[Agent], Awaitable[Any]] | None = None,
    **options: Any,
) -> tuple[Attempt, Scripted]:
    """One attempt against a script; with `also`, what that coroutine makes of the running agent instead."""

    async def run() -> tuple[Any, Scripted]:
        import openai

        async with Scripted(script) as endpoint:

            def client_for(*, seed: int, replicate: int, attempt: int) -> PlainClient:
                sdk = openai.AsyncOpenAI(
                    base_url=endpoint.base_url, api_key=KEY, max_retries=0, http_client=http_client
                )
                return PlainClient(sdk, endpoint)

            context = options.pop("context_length", 32_768)
            agent = Agent(
                config, client_for=client_for, model_name="scripted", context_length=context, **options
            )
            async with agent:
                if also is not None:
                    return await also(agent), endpoint
                return await agent.attempt(task, PROMPT, sampling, 0), endpoint

    return asyncio.run(run())
