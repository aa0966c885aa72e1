"""The connections to one address: sends a request and says what came of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from core.errors import InputError
from core.llm import failure
from core.llm.failure import Failure
from core.settings import Endpoint
from core.trust import read_key

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientSession

HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "winnow"}
"""What is sent besides the key and what HTTP itself asks for: no fact about this machine."""

KEPT_ALIVE_S = 5.0
"""For so long an idle connection is kept: common servers close theirs soon after."""


@dataclass(frozen=True)
class Address:
    """Where an endpoint is, and the key that it takes."""

    base_url: str
    key: str | None = field(default=None, repr=False)


Connect = Callable[[], Awaitable[Address]]
"""Tells the address; called before the first request, and again when a connection was lost."""


def fixed_address(endpoint: Endpoint) -> Connect:
    """The `Connect` of an ordinary endpoint: its base URL, and its key from the environment.

    Calling it raises TrustError or InputError where the key may not be read, may not go to that host, or is not set.

    Raises:
        InputError: there is no base URL.
    """
    if not endpoint.base_url:
        raise InputError(f"Endpoint {endpoint.name} has no base URL.")

    async def connect() -> Address:
        host = urlsplit(endpoint.base_url).hostname
        key = read_key(endpoint.key_env, host=host) if endpoint.key_env else None
        return Address(endpoint.base_url, key)

    return connect


class Connection:
    """Keeps at most `endpoint.concurrency` connections to one address open, and reuses them."""

    def __init__(self, address: Address, endpoint: Endpoint, path: str = "chat/completions") -> None:
        """Call it in the event loop that it is used in.

        Args:
            address: where to.
            endpoint: its limits.
            path: of all requests, below the base URL.
        """
        from yarl import URL

        self.address = address
        self._endpoint = endpoint
        self._url = URL(f"{address.base_url.rstrip('/')}/{path}")
        self._session = _session(address, endpoint)

    async def post(self, content: bytes) -> bytes | Failure:
        """Send one request: the body of the answer. What goes wrong is returned, not raised."""
        import aiohttp

        endpoint, address = self._endpoint, self.address
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                # A redirect would carry the prompt to an address that nobody chose.
                async with self._session.post(self._url, data=content, allow_redirects=False) as response:
                    body = await response.read()
        except TimeoutError:
            return failure.timed_out(endpoint)
        except (aiohttp.ClientError, OSError) as e:
            return failure.no_connection(endpoint, address.base_url, sent=not isinstance(e, _never_sent()))
        if 200 <= response.status < 300:
            return body
        message, code = _upstream(body.decode(errors="replace").strip())
        headers = {k.lower(): v for k, v in response.headers.items()}
        now = datetime.now(UTC)
        return failure.refused(
            endpoint, address.base_url, response.status, message, code, headers, address.key, now
        )

    async def aclose(self) -> None:
        await self._session.close()


def _session(address: Address, endpoint: Endpoint) -> ClientSession:
    """A client on which a call costs a fifth of the CPU that it costs on the OpenAI SDK."""
    import aiohttp

    place = urlsplit(address.base_url)
    loopback = place.hostname in {"127.0.0.1", "::1", "localhost"}
    return aiohttp.ClientSession(
        headers=HEADERS | ({"Authorization": f"Bearer {address.key}"} if address.key else {}),
        # `post` has a time-out over all of it.
        timeout=aiohttp.ClientTimeout(),
        connector=aiohttp.TCPConnector(
            limit=endpoint.concurrency,
            keepalive_timeout=KEPT_ALIVE_S,
            # Loading the certificates takes 30 ms, and plain HTTP on this machine has none to check.
            ssl=True if loopback and place.scheme == "http" else _certificates(),
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        # Not `trust_env`, which would also send what ~/.netrc holds.
        proxy=None if loopback else _proxy(place),
    )


def _certificates() -> SSLContext:
    """What TLS connections are checked against: the system's authorities, or SSL_CERT_FILE or SSL_CERT_DIR."""
    import httpx2

    return httpx2.create_ssl_context()


def _proxy(place: SplitResult) -> str | None:
    """The proxy that the environment (or the system) names for an address."""
    from urllib.request import getproxies, proxy_bypass

    found = getproxies()
    proxy = found.get(place.scheme) or found.get("all")
    if not proxy or proxy_bypass(place.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _never_sent() -> tuple[type[Exception], ...]:
    """What goes wrong before a request can have reached the server."""
    import aiohttp

    return (
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
        aiohttp.InvalidURL,
    )


def _upstream(text: str) -> tuple[str, str]:
    """An error body's own words, and its code and type."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, str):
        return inner, ""
    if not isinstance(inner, dict):
        return text, ""
    message = next((inner[k] for k in ("message", "detail", "error") if isinstance(inner.get(k), str)), text)
    return message, " ".join(str(inner[k]) for k in ("code", "type", "status", "param") if inner.get(k))
