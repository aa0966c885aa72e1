"""Security headers of every answer: even markup that slipped through could load and send nothing."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
Asgi = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

STARTS = {"http.response.start", "websocket.accept", "websocket.http.response.start"}
"""What begins an answer: a page or a file, the upgrade to a websocket, the refusal of one."""
HOST = re.compile(rb"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9a-fA-F:]{2,45}\](:[0-9]{1,5})?")


def content_policy(host: str = "") -> str:
    """Nothing comes from elsewhere, and nothing goes there.

    Args:
        host: what the browser calls this server; its own websocket is named by it, as not every browser counts that
            as 'self'.
    """
    own = f" ws://{host} wss://{host}" if host else ""
    return "; ".join(
        (
            "default-src 'self'",
            "img-src 'self' data: blob:",
            "style-src 'self' 'unsafe-inline'",
            "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # Streamlit's charts compile their expressions
            f"connect-src 'self'{own}",
            "font-src 'self' data:",
            "worker-src 'self' blob:",
            "frame-src 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'self'",
            "object-src 'none'",
        )
    )


HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)


class SecurityHeaders:
    """ASGI middleware that adds the headers to every answer, websockets included."""

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        policy = content_policy(_host(scope)).encode()
        ours = (*HEADERS, (b"content-security-policy", policy))
        names = {name for name, _ in ours}

        async def with_headers(message: Message) -> None:
            if message["type"] in STARTS:
                kept = [(n, v) for n, v in message.get("headers", ()) if n.lower() not in names]
                message["headers"] = [*kept, *ours]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] in ("http", "websocket") else send)


def _host(scope: MutableMapping[str, Any]) -> str:
    """What the request calls this server; empty where that is no host."""
    said: bytes = next((value for name, value in scope.get("headers", ()) if name == b"host"), b"")
    return said.decode("ascii") if HOST.fullmatch(said) else ""
