"""One client of the SDK, bound to one address: sends a request and says what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import InputError
from core.llm import failure
from core.llm.failure import Failure
from core.settings import Endpoint
from core.trust import read_key

if TYPE_CHECKING:
    from openai import AsyncOpenAI

HEADERS = frozenset(
    b"accept accept-encoding authorization connection content-length content-type host".split()
)
"""All that is sent. The SDK would add facts about this machine, and whatever OPENAI_ORG_ID,
OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS hold, to endpoints that they were not meant for."""


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

    def __init__(self, address: Address, endpoint: Endpoint) -> None:
        self.address = address
        self._endpoint = endpoint
        self._client = _client(address, endpoint)

    async def post(self, content: bytes) -> bytes | Failure:
        """Send one request for a chat completion: the body of the answer. What goes wrong is returned, not raised."""
        import httpx2
        import openai

        endpoint, address = self._endpoint, self.address
        try:
            async with asyncio.timeout(endpoint.timeout_s):
                response = await self._client.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=content,
                    options={"headers": {"Content-Type": "application/json"}},
                )
            return response.content
        except TimeoutError:
            return failure.timed_out(endpoint)
        except openai.APIConnectionError as e:  # a time-out of the SDK is one, too, and none is set
            return failure.no_connection(endpoint, address.base_url, sent=_was_sent(e))
        except openai.APIStatusError as e:
            message, code = _upstream(e.body, e.response.text)
            headers = {k.lower(): v for k, v in e.response.headers.items()}
            now = datetime.now(UTC)
            return failure.refused(
                endpoint, address.base_url, e.status_code, message, code, headers, address.key, now
            )

    async def aclose(self) -> None:
        await self._client.close()


def _client(address: Address, endpoint: Endpoint) -> AsyncOpenAI:
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    allowed = HEADERS if address.key is not None else HEADERS - {b"authorization"}

    async def strip(request: httpx2.Request) -> None:
        kept = [(name, value) for name, value in request.headers.raw if name.lower() in allowed]
        request.headers = httpx2.Headers([*kept, (b"User-Agent", b"winnow")])

    place = urlsplit(address.base_url)
    loopback = place.hostname in {"127.0.0.1", "::1", "localhost"}
    return AsyncOpenAI(
        base_url=address.base_url,
        api_key=address.key or "none",
        timeout=None,  # `post` has one over all of it
        max_retries=0,
        # Said here too, lest an Authorization in OPENAI_CUSTOM_HEADERS takes its place.
        default_headers={"Authorization": f"Bearer {address.key}"},
        # On aiohttp: a third of the CPU of httpx's own transport, and it does not grow with the concurrency.
        http_client=DefaultAioHttpClient(
            timeout=None,
            limits=httpx2.Limits(
                max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency
            ),
            event_hooks={"request": [strip]},
            # A redirect would carry the prompt to an address that nobody chose.
            follow_redirects=False,
            trust_env=not loopback,
            # Loading the certificates takes 30 ms, and plain HTTP on this machine has none to check.
            verify=not (loopback and place.scheme == "http"),
        ),
    )


def _was_sent(error: BaseException | None) -> bool:
    """Whether a request may have reached the server.

    Told by the causes: the SDK's transport calls every lost connection a time-out of connecting.
    """
    import aiohttp

    never = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
    while error is not None:
        if isinstance(error, (*never, aiohttp.InvalidURL)):
            return False
        error = error.__cause__
    return True


def _upstream(body: object, text: str) -> tuple[str, str]:
    """An error body's own words, and its code and type."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        facts: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {"message": inner}
        message = next(
            (facts[k] for k in ("message", "detail", "error") if isinstance(facts.get(k), str)), text
        )
        return message, " ".join(str(facts[k]) for k in ("code", "type", "status", "param") if facts.get(k))
    return (body if isinstance(body, str) else text), ""
