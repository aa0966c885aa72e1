"""What is slow to load is loaded before it is needed, so that the first chart and table do not wait for it.

The server does so while it starts; a browser, once a page is drawn and it has nothing else to do: the code of charts
has almost 5 MB, which a tab would else read and compile when the first page with one is opened.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st

from pages.parts import laid_down

SLOW = ("pandas", "pyarrow", "plotly.graph_objects")
SCRIPTS = Path(st.__file__).parent / "static" / "static" / "js"
LARGE = ("DataFrame.*.js", "PlotlyChart.*.js")
"""What of Streamlit's own code only some pages use; the smallest first."""
AHEAD = """<script>
(() => {
  if (window.winnowAhead || navigator.connection?.saveData) return;
  window.winnowAhead = true;
  const names = NAMES;
  const own = document.querySelector('script[type="module"][src]');
  const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 500));
  const next = () => {
    const name = names.shift();
    if (name && own) import(new URL(name, own.src)).then(() => idle(next), () => {});
  };
  const drawn = () => {
    const still = document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]');
    if (still) idle(next);
    else setTimeout(drawn, 200);
  };
  setTimeout(drawn, 200);
})();
</script>""".replace(
    "NAMES", json.dumps([f.name for pattern in LARGE for f in sorted(SCRIPTS.glob(pattern))])
)
"""Loads them as Streamlit itself would, so that nothing is loaded twice."""


@asynccontextmanager
async def warm(_app: object) -> AsyncIterator[None]:
    """Lifespan of the server: import the slow libraries in a thread of their own; leave no upload behind.

    A server that is told to stop ends this before its process does, which SIGTERM ends without any tidying up.
    """
    threading.Thread(target=_load, daemon=True).start()
    laid_down.sweep()
    try:
        yield
    finally:
        laid_down.clear()


def _load() -> None:
    for name in SLOW:
        importlib.import_module(name)
