"""What makes two calls the same call."""

from __future__ import annotations

import hashlib

from core.record import canonical_json
from core.settings import EMBEDDED, Endpoint


def cache_key(endpoint: Endpoint, request: str, seed: int, replicate: int, attempt: int) -> str:
    """SHA-256 of everything that a reply depends on, 64 hex digits.

    Args:
        endpoint: gives the address; the embedded model goes by its name, for its address changes with every start.
        request: the body as it is sent (model, messages, parameters), without `n` and `seed`, as canonical JSON.
        seed: of this replicate. It counts even where the endpoint is not sent one: another seed, another draw.
        replicate: number in its group.
        attempt: 0, or how often the user asked for fresh replies to the same request.
    """
    place = canonical_json(EMBEDDED if endpoint.name == EMBEDDED else endpoint.base_url)
    # The canonical form of the whole, put together by hand: the request, its long part, is written out only once.
    whole = f'{{"attempt":{attempt},"endpoint":{place},"replicate":{replicate},"request":{request},"seed":{seed}}}'
    return hashlib.sha256(whole.encode()).hexdigest()
