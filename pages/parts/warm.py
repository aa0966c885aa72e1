"""What is slow to load is loaded while the server starts, so that the first chart does not wait for it."""

from __future__ import annotations

import importlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SLOW = ("pandas", "pyarrow", "plotly.graph_objects")


@asynccontextmanager
async def warm(_app: object) -> AsyncIterator[None]:
    """Lifespan of the server: import the slow libraries in a thread of their own."""
    threading.Thread(target=_load, daemon=True).start()
    yield


def _load() -> None:
    for name in SLOW:
        importlib.import_module(name)
