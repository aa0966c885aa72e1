"""As much of HTTP/1.1 as the stub server needs: keep-alive, one request at a time on a connection, little CPU."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

END_OF_HEAD = b"\r\n\r\n"


class Request(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Connection(asyncio.Protocol):
    """One connection: hands each request to `serve`, which answers it, now or later, or aborts."""

    def __init__(
        self,
        serve: Callable[[Request, Connection], None],
        opened: Callable[[Connection], None],
        closed: Callable[[Connection], None],
    ) -> None:
        self._serve = serve
        self._opened = opened
        self._closed = closed
        self._read = b""
        self._busy = False
        self._transport: asyncio.Transport

    @property
    def open(self) -> bool:
        return not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed(self)

    def data_received(self, data: bytes) -> None:
        self._read += data
        self._next()

    def _next(self) -> None:
        if self._busy or (end := self._read.find(END_OF_HEAD)) < 0:
            return
        first, *lines = self._read[:end].decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        start = end + len(END_OF_HEAD)
        whole = start + int(headers.get("content-length", 0))
        if len(self._read) < whole:
            return
        body, self._read = self._read[start:whole], self._read[whole:]
        method, path, _ = first.split(" ", 2)
        self._busy = True
        self._serve(Request(method, path, headers, body), self)

    def send(
        self,
        status: int,
        body: Mapping[str, Any] | bytes,
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        """Answer the request; a `length` beyond that of the body is a lie that ends the connection."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = "".join(f"{k}: {v}\r\n" for k, v in (headers or {}).items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length or len(raw)}\r\n"
        self._transport.write(f"{head}{more}\r\n".encode() + raw)
        if length is not None and length != len(raw):
            self._transport.close()
            return
        self._busy = False
        if self._read:
            self._next()

    def abort(self) -> None:
        """Break the connection off, without an answer."""
        self._transport.abort()
