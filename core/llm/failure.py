"""Says what went wrong with a request in one sentence, and whether another try makes sense.

Errors of the client end here: they hold the request with its key, so none is ever chained to one of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from core.llm.retry import retry_after_s
from core.settings import EMBEDDED, Endpoint
from core.trust import scrub

RETRIED = frozenset({408, 409, 425, 429})
"""Status codes that another try may cure, besides all from 500 on."""

CROWDED = frozenset({429, 503, 529})
"""Status codes of a server that is asked too much."""

SHOWN = 300
"""Characters of an upstream message that are shown."""

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:length|size|window)|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model\b.{0,80}(?:not found|not exist|unknown)|unknown model|model_not_found", re.I | re.S
)
_BAD_KEY = re.compile(r"invalid.{0,20}api[ _-]?key|api[ _-]?key.{0,20}(?:invalid|not valid)", re.I)
_NO_N = re.compile(r"""['"`]n['"`]|\bn (?:must|should|is|has)\b|\bn\s*[=<>:]""")


@dataclass(frozen=True)
class Failure:
    """One request that brought nothing."""

    sentence: str
    retry: bool = False
    fatal: bool = False
    """The endpoint cannot be used at all, whatever is asked."""
    after_s: float | None = None
    """Seconds that the server asks to wait."""
    crowded: bool = False
    """The server is asked too much."""
    sent: bool = True
    """False when no connection came about: nothing left this machine."""
    billed: bool = False
    """Whether the server may have worked, and charged, for it."""
    reconnect: bool = False
    """The address may no longer hold (the embedded server stops when idle)."""
    refuses_n: bool = False
    """The server does not take so large an `n`."""


def timed_out(endpoint: Endpoint) -> Failure:
    """No answer within the time-out: the server may still be working on it, and charge for it."""
    return Failure(
        f"Endpoint {endpoint.name} did not answer within {endpoint.timeout_s:g} seconds.",
        retry=True,
        billed=True,
        reconnect=True,
    )


def unreadable(endpoint: Endpoint, what: str, key: str | None) -> Failure:
    """The body holds no usable reply."""
    return Failure(f"Endpoint {endpoint.name} answered {_shown(what, key)}.", retry=True, billed=True)


def no_connection(endpoint: Endpoint, base_url: str, *, sent: bool) -> Failure:
    """The connection was refused, or lost before the whole reply had come."""
    if sent:
        sentence = f"The connection to endpoint {endpoint.name} was lost before the reply had come."
    elif endpoint.name == EMBEDDED:
        sentence = "The embedded model's server cannot be reached."
    else:
        sentence = (
            f"Endpoint {endpoint.name} cannot be reached at {_host(base_url)}: check that the server is running "
            "and that the base URL is right."
        )
    return Failure(sentence, retry=True, fatal=not sent, sent=sent, billed=sent, reconnect=True)


def refused(
    endpoint: Endpoint,
    base_url: str,
    status: int,
    message: str,
    code: str,
    headers: dict[str, str],
    key: str | None,
    now: datetime,
) -> Failure:
    """The server answered with an error status.

    `message` is in the server's own words, `code` its error code and type as far as it names them; names of
    `headers` are in lower case.
    """
    name, said = endpoint.name, _shown(message, key)
    facts = f"{code} {message}"
    if status == 401 or (status in {400, 403} and _BAD_KEY.search(facts)):
        return Failure(_key_advice(endpoint, status), fatal=True)
    if status == 402 or "insufficient_quota" in facts:
        return Failure(f"Endpoint {name} has no credit left ({status}): {said}.", fatal=True)
    if status == 403:
        return Failure(
            f"Endpoint {name} does not let this key use model {endpoint.model} (403): choose another model or "
            f"key. It said: {said}.",
            fatal=True,
        )
    if status == 404 or (status == 400 and _NO_MODEL.search(facts)):
        return Failure(
            f"Endpoint {name} knows no model {endpoint.model} at {_host(base_url)}{urlsplit(base_url).path} "
            f"({status}): check the model's name, and the base URL, which usually ends in /v1.",
            fatal=True,
        )
    if 300 <= status < 400:
        return Failure(
            f"Endpoint {name} sends its callers elsewhere ({status}): set the base URL to the final address.",
            fatal=True,
        )
    if status in RETRIED or status >= 500:
        what = "is asked too often" if status == 429 else "has trouble of its own"
        return Failure(
            f"Endpoint {name} {what} ({status}): {said}.",
            retry=True,
            after_s=retry_after_s(headers, now),
            crowded=status in CROWDED,
        )
    if status == 413 or _TOO_LONG.search(facts):
        return Failure(
            f"The prompt does not fit the context of model {endpoint.model} ({status}): shorten it, or inject "
            f"less. It said: {said}."
        )
    return Failure(
        f"Endpoint {name} refused the request ({status}): {said}.", refuses_n=bool(_NO_N.search(message))
    )


def _key_advice(endpoint: Endpoint, status: int) -> str:
    if endpoint.name == EMBEDDED:
        return f"The embedded model's server refused its own key ({status}): start the command again."
    if endpoint.key_env is None:
        return f"Endpoint {endpoint.name} asks for a key ({status}): name the variable that holds it (--key-env)."
    return (
        f"Endpoint {endpoint.name} refused the key in the variable {endpoint.key_env} ({status}): "
        "put a valid key into it."
    )


def _host(base_url: str) -> str:
    """The address without a query, which may hold a key."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _shown(message: str, key: str | None) -> str:
    """The server's own words, on one line, without the key and without an end of their own."""
    text = " ".join(message[: 4 * SHOWN].split())
    text = scrub(text, [key] if key else [])
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return text.rstrip(".!") or "no reason given"
