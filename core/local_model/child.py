"""The process that serves the embedded model: `python -m core.local_model.child FOLDER MODEL START`.

It ends when it has no user left (LINGER_S later, so that commands in a row share it) or when nobody asked
anything for IDLE_S. It ends by os._exit: tearing llama.cpp down with a request in flight hangs (DESIGN 5).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from core.local_model import control
from core.local_model.control import Runtime, State
from core.local_model.model import CONTEXT_LENGTH, MODEL_NAME, SLOTS

IDLE_S = 300.0
"""Seconds without a request before the server stops; `WINNOW_MODEL_IDLE_S` overrides it."""
LINGER_S = 2.0
"""Seconds that it waits for the next user when the last one is gone."""
LOG_BYTES = 1 << 20
"""The log is cut to its tail when it grows past this."""
_LOG_TAIL = 1 << 16


class Users:
    """Who uses the server and when it was last used: the one place that decides to stop."""

    def __init__(self, idle_s: float, linger_s: float = LINGER_S) -> None:
        self._idle_s, self._linger_s = idle_s, linger_s
        self._lock = threading.Lock()
        self._count = 0
        self._used = self._left = time.monotonic()
        self._stopped = False

    def enter(self, role: str) -> int | None:
        """Take a caller in; None once the server has decided to stop."""
        with self._lock:
            if self._stopped:
                return None
            if role == control.USER:
                self._count += 1
                self._used = time.monotonic()
            return self._count

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            self._left = time.monotonic()

    def use(self) -> bool:
        """Put the idle stop off; False once the server has decided to stop."""
        with self._lock:
            self._used = time.monotonic()
            return not self._stopped

    def stop_if_unused(self) -> bool:
        """Decide to stop, for good, if there is no user or no use."""
        with self._lock:
            now = time.monotonic()
            alone = self._count == 0 and now - self._left >= self._linger_s
            self._stopped = self._stopped or alone or now - self._used >= self._idle_s
            return self._stopped


def cores() -> int:
    """Processors that this process may use; `WINNOW_MODEL_THREADS` leaves some of them to others."""
    if (chosen := os.environ.get("WINNOW_MODEL_THREADS", "")).isdigit():
        return max(1, int(chosen))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve(model: str, key: str) -> tuple[Any, str]:
    """Load the model and serve it on loopback.

    Returns:
        The server, which lives as long as it is referenced, and its address without a path.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {MODEL_NAME}
    params.n_ctx, params.n_parallel = SLOTS * CONTEXT_LENGTH, SLOTS
    params.kv_unified = False  # with one cache for all slots, equal seeds give unequal replies
    params.cpuparams.n_threads = cores()
    params.cache_ram_mib = 0  # else it keeps up to 8 GB of prompts of the past
    params.cache_idle_slots = False
    params.fit_params = False  # else it may shrink the context where memory is short
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [key]
    params.cors_origins, params.cors_origins_explicit, params.cors_credentials = "", True, False
    params.ui = False
    params.verbosity = 2  # warnings; the log holds no prompts
    server = xllamacpp.Server(params)
    return server, str(server.listening_address)


def admit_users(listener: socket.socket, key: str, users: Users) -> None:
    """Accept connections for ever, each in a thread of its own."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=attend, args=(connection, key, users), daemon=True).start()


def attend(connection: socket.socket, key: str, users: Users) -> None:
    """Serve one control connection until its other side is gone, however it went."""
    with connection:
        if control.admit(connection, key, users.enter) != control.USER:
            return
        try:
            connection.settimeout(None)
            while connection.recv(64) and users.use():
                connection.sendall(control.NOTED)
        except OSError:  # killed: as gone as one that closed
            pass
        finally:
            users.leave()


def watch(users: Users, address: str, key: str, idle_s: float, log: Path) -> None:
    """Return when it is time to stop."""
    look_s = min(10.0, idle_s / 10)
    tick = threading.Event()
    looked, seen = time.monotonic(), ""
    while not users.stop_if_unused():
        tick.wait(min(0.25, look_s))
        if time.monotonic() - looked >= look_s:
            found = activity(address, key)
            if found != seen:
                users.use()
            looked, seen = time.monotonic(), found if found != "busy" else ""
            cut(log)


def activity(address: str, key: str) -> str:
    """A text that changes when a request was served since; "busy" while one is (users need not say so)."""
    host, port = address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    try:
        connection.request("GET", "/slots", headers={"Authorization": f"Bearer {key}"})
        slots = json.loads(connection.getresponse().read())
        if any(slot["is_processing"] for slot in slots):
            return "busy"
        return " ".join(str(slot.get("id_task")) for slot in slots)
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return "busy"  # too busy to answer
    finally:
        connection.close()


def redirect(log: Path) -> None:
    """Send what llama.cpp and Python say to the log, in append mode, so that it can be cut while in use."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)


def cut(log: Path) -> None:
    """Keep the log bounded."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > LOG_BYTES:
            with log.open("r+b") as file:
                file.seek(-_LOG_TAIL, os.SEEK_END)
                tail = file.read()
                file.seek(0)
                file.write(tail)
                file.truncate()


def idle_seconds() -> float:
    try:
        return max(1.0, float(os.environ.get("WINNOW_MODEL_IDLE_S", IDLE_S)))
    except ValueError:
        return IDLE_S


def main(folder: str, model: str, start: str) -> None:
    """Serve until unused."""
    runtime = Runtime(Path(folder))
    redirect(runtime.log)
    key, idle_s = secrets.token_urlsafe(32), idle_seconds()
    server, address = serve(model, key)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    users = Users(idle_s)
    runtime.write(State(start, os.getpid(), listener.getsockname()[1], f"{address}/v1", key))
    threading.Thread(target=admit_users, args=(listener, key, users), daemon=True).start()
    watch(users, address, key, idle_s, runtime.log)
    sys.stderr.flush()
    os._exit(0 if server else 1)


if __name__ == "__main__":
    main(*sys.argv[1:4])
