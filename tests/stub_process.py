"""The stub server as a process of its own: it outlives a client that is killed, and its work is not the client's."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PATIENCE_S = 60.0
POLL_S = 0.01

# A stub on this machine is not asked through a proxy.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@contextmanager
def stub_process(folder: Path, *options: str, latency_ms: float = 20, for_s: int = 600) -> Iterator[str]:
    """Start a stub server with these options of its command line; gives its address."""
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.stub_server", "--port-file", str(port_file)]
    command += ["--latency-ms", str(latency_ms), "--for-s", str(for_s), *options]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not port_file.exists():
            assert time.monotonic() < deadline, "the stub server did not start"
            time.sleep(POLL_S)
        yield f"http://127.0.0.1:{port_file.read_text().strip()}/v1"
    finally:
        process.kill()
        process.wait()


def stats(address: str) -> dict[str, Any]:
    return _asked(address, "stats")


def requests(address: str) -> list[dict[str, Any]]:
    """The body of every chat request since the last reset, where they are kept."""
    found: list[dict[str, Any]] = _asked(address, "requests")["requests"]
    return found


def reset(address: str) -> None:
    _asked(address, "reset", method="POST")


def _asked(address: str, what: str, method: str = "GET") -> dict[str, Any]:
    request = urllib.request.Request(f"{address.removesuffix('/v1')}/stub/{what}", method=method)
    with _open(request) as reply:
        found: dict[str, Any] = json.load(reply)
    return found
