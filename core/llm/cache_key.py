"""What makes two calls the same call, and where the replies that were paid for are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from core.ports import Completion
from core.record import content_hash
from core.settings import EMBEDDED, Endpoint


class CallCache(Protocol):
    """Replies by their key. Called from the event loop; the store has one in SQLite."""

    def get(self, key: str) -> Completion | None:
        """The stored reply, or None."""

    def put_many(self, entries: Sequence[tuple[str, Completion]]) -> None:
        """Store all replies of one request in one transaction: on return a kill can no longer lose them."""


def cache_key(endpoint: Endpoint, request: Mapping[str, Any], seed: int, replicate: int, attempt: int) -> str:
    """SHA-256 of everything that a reply depends on, 64 hex digits.

    Args:
        endpoint: gives the address; the embedded model goes by its name, for its address changes with every start.
        request: the body as it is sent (model, messages, parameters), without `n` and `seed`.
        seed: of this replicate. It counts even where the endpoint is not sent one: another seed, another draw.
        replicate: number in its group.
        attempt: 0, or how often the user asked for fresh replies to the same request.
    """
    return content_hash(
        {
            "endpoint": EMBEDDED if endpoint.name == EMBEDDED else endpoint.base_url,
            "request": dict(request),
            "seed": seed,
            "replicate": replicate,
            "attempt": attempt,
        }
    )
