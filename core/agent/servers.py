"""MCP servers: programs or addresses that the trust file names, whose tools an agent may call.

1. A server is started once for a run. When its connection is lost, the call that finds out fails and says so; the
   next one starts it anew, at most `MAX_RESTARTS` times.
2. A program gets the variables that its entry in the trust file names, and the handful without which programs do not
   start (PATH, HOME, ...), never the keys of this process. What it prints besides the protocol is dropped.
3. A connection is opened and closed by one task, as the library requires; calls come from all rollouts.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from core.agent.tool import Done, Tool, ToolError, clean
from core.errors import InputError
from core.trust import McpServer, scrub

if TYPE_CHECKING:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from mcp.types import CallToolResult
    from mcp.types import Tool as McpTool

    _Connector = MCPServerStdio | MCPServerStreamableHttp

START_S = 30.0
"""Seconds until a server must have told its tools."""

CALL_S = 60.0
"""Seconds that one call may take."""

MAX_RESTARTS = 5
"""Of one server in one run."""

MAX_NAME = 64
"""Characters of a function's name, as endpoints take it."""

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")


class Server:
    """One MCP server of a run."""

    def __init__(self, name: str, spec: McpServer, environ: Mapping[str, str] = os.environ) -> None:
        """Read what the server needs.

        Raises:
            InputError: a variable that it needs is not set.
        """
        self.name = name
        self.tools: Sequence[McpTool] = ()
        """As they were told at the first start."""
        self._spec = spec
        self._variables = spec.passed_on(environ)
        self._key = spec.key(environ)
        self.secrets = tuple(v for n, v in self._variables.items() if _SECRET.search(n)) + (
            (self._key,) if self._key else ()
        )
        """What the server was given and nobody else may see."""
        self._restarts = 0
        self._starting = asyncio.Lock()
        self._link: _Link | None = None

    async def start(self) -> None:
        """Start it and learn its tools.

        Raises:
            InputError: it cannot be started, or does not answer.
        """
        try:
            link = await self._linked()
        except ToolError as e:
            raise InputError(f"The MCP server {self.name!r} could not be used: {e}.") from e
        self.tools = link.tools

    async def stop(self) -> None:
        """End it."""
        if self._link is not None:
            await self._link.close()
            self._link = None

    async def call(self, tool: str, parameters: dict[str, Any], left_s: float) -> Done:
        """Call one of its tools.

        Raises:
            ToolError: it failed, took too long, or the server died.
        """
        link = await self._linked()
        time_s = min(CALL_S, left_s)
        try:
            async with asyncio.timeout(time_s):
                result = await link.call(tool, parameters)
        except TimeoutError as e:
            raise ToolError(f"TimeoutError: {self.name} did not answer within {time_s:.3g} s") from e
        except Exception as e:
            if said := _said(e):
                raise ToolError(said) from e
            await self._drop(link)
            raise ToolError(
                f"ConnectionError: the server {self.name} was lost during the call; it is started anew when it is "
                "called again"
            ) from e
        text = _text(result)
        if result.isError:
            first, _, more = text.strip().partition("\n")
            raise ToolError(first or f"{tool} failed and did not say why", text if more else "")
        return Done(text)

    async def _linked(self) -> _Link:
        async with self._starting:
            if self._link is None:
                if self._restarts > MAX_RESTARTS:
                    raise ToolError(
                        f"the server {self.name} was lost {self._restarts} times and is not started again"
                    )
                self._restarts += 1
                try:
                    self._link = await _Link.open(self.name, self._spec, self._variables, self._key)
                except TimeoutError as e:
                    raise ToolError(f"it did not answer within {START_S:g} s") from e
                except Exception as e:
                    raise ToolError(
                        scrub(f"it could not be started: {type(e).__name__}: {e}", self.secrets)
                    ) from e
            return self._link

    async def _drop(self, link: _Link) -> None:
        async with self._starting:
            if self._link is link:
                self._link = None
                await link.close()


def server_tools(servers: Sequence[Server], taken: Sequence[str] = ()) -> list[Tool]:
    """The tools of all servers, under names that no two share: `server__tool`.

    Args:
        servers: started.
        taken: names that are used already.
    """
    names = set(taken)
    tools: list[Tool] = []
    for server in servers:
        for known in server.tools:
            name = _free(f"{server.name}__{known.name}", names)
            names.add(name)
            tools.append(_tool(server, known, name))
    return tools


def _tool(server: Server, known: McpTool, name: str) -> Tool:
    async def call(parameters: dict[str, Any], left_s: float) -> Done:
        return await server.call(known.name, parameters, left_s)

    schema = {"type": "object", "properties": {}, **known.inputSchema}
    return Tool(name, clean(known.description or known.name)[:1024], schema, call, server.secrets)


def _free(wanted: str, taken: set[str]) -> str:
    """The name with only what a function's name may hold, and a number where it is taken.

    >>> _free("a__b.c", {"a__b_c"})
    'a__b_c_2'
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", wanted)[:MAX_NAME]
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain[: MAX_NAME - 1 - len(str(number))]}_{number}"
    return name


class _Link:
    """One connection: a task that opens it, waits, and closes it."""

    def __init__(self, server: _Connector, lost: asyncio.Event) -> None:
        self.lost = lost
        """Set where the server could not be asked, or refused to be."""
        self._server = server
        self.tools: Sequence[McpTool] = ()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, name: str, spec: McpServer, variables: dict[str, str], key: str | None) -> _Link:
        """Connect, and ask for the tools."""
        lost = asyncio.Event()
        link = cls(_connector(name, spec, variables, key, lost), lost)
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        link._task = asyncio.create_task(link._hold(opened))
        try:
            async with asyncio.timeout(START_S):
                await asyncio.shield(opened)
        except BaseException:  # a time-out and a cancellation, too: its process must not stay; raised again
            link._task.cancel()
            await asyncio.gather(link._task, return_exceptions=True)
            raise
        return link

    async def call(self, tool: str, parameters: dict[str, Any]) -> CallToolResult:
        """Call a tool.

        Raises:
            ConnectionError: the connection is lost; over HTTP the library would wait for an answer all the same.
        """
        if self._server.session is None:
            raise ConnectionError("the session has ended")
        calling = asyncio.create_task(self._server.session.call_tool(tool, parameters))
        losing = asyncio.create_task(self.lost.wait())
        try:
            await asyncio.wait({calling, losing}, return_when=asyncio.FIRST_COMPLETED)
            if self.lost.is_set():
                raise ConnectionError("the server did not take the call")
            return calling.result()
        finally:
            for task in (calling, losing):
                task.cancel()
            await asyncio.gather(calling, losing, return_exceptions=True)

    async def close(self) -> None:
        """Close it; what goes wrong then is of no use to anyone."""
        self._closing.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _hold(self, opened: asyncio.Future[None]) -> None:
        try:
            await self._server.connect()  # type: ignore[no-untyped-call]
            try:
                self.tools = await self._server.list_tools()
                opened.set_result(None)
                await self._closing.wait()
            finally:
                await self._server.cleanup()  # type: ignore[no-untyped-call]
        except BaseException as e:
            if not opened.done():
                opened.set_exception(e if isinstance(e, Exception) else ConnectionError("it ended"))
                opened.exception()  # looked at, should nobody wait for it any more
            raise


def _connector(
    name: str, spec: McpServer, variables: dict[str, str], key: str | None, lost: asyncio.Event
) -> _Connector:
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from mcp.client.stdio import stdio_client

    if spec.url:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return MCPServerStreamableHttp(
            {"url": spec.url, "headers": headers, "timeout": CALL_S, "httpx_client_factory": _watching(lost)},
            name=name,
            client_session_timeout_seconds=None,
        )

    class Quiet(MCPServerStdio):
        @asynccontextmanager
        async def create_streams(self) -> AsyncIterator[Any]:
            with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230  opens at once
                async with stdio_client(self.params, errlog=nowhere) as streams:
                    yield streams

    return Quiet(
        {"command": spec.command[0], "args": list(spec.command[1:]), "env": variables},
        name=name,
        client_session_timeout_seconds=None,
    )


def _watching(lost: asyncio.Event) -> Callable[..., Any]:
    """Makes HTTP clients that note where a request was not taken."""
    import httpx

    class Watched(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            try:
                response = await super().handle_async_request(request)
            except httpx.TransportError:
                lost.set()
                raise
            if response.status_code >= 400 and request.method == "POST":
                lost.set()
            return response

    def client(
        headers: dict[str, str] | None = None, timeout: Any = None, auth: httpx.Auth | None = None
    ) -> httpx.AsyncClient:
        return httpx.AsyncClient(headers=headers, timeout=timeout, auth=auth, transport=Watched())

    return client


def _said(error: Exception) -> str:
    """What the server answered instead of a result; empty where the connection is what failed."""
    from mcp import McpError
    from mcp.types import CONNECTION_CLOSED

    if isinstance(error, McpError) and error.error.code != CONNECTION_CLOSED:
        return error.error.message or f"the server refused the call ({error.error.code})"
    return ""


def _text(result: CallToolResult) -> str:
    """What a result says; of what is no text, only its kind and size."""
    from mcp.types import AudioContent, ImageContent, TextContent

    shown: list[str] = []
    for block in result.content:
        if isinstance(block, TextContent):
            shown.append(block.text)
        elif isinstance(block, ImageContent | AudioContent):
            shown.append(f"[{block.type}, {len(block.data) * 3 // 4:,} bytes]")
        else:
            shown.append(block.model_dump_json(exclude_none=True))
    if not shown and result.structuredContent is not None:
        shown.append(json.dumps(result.structuredContent, ensure_ascii=False))
    return "\n".join(shown)
