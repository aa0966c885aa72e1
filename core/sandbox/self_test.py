"""A few escapes that a sandbox must hold, tried for real: what `winnow sandbox` shows."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.errors import SandboxError
from core.ports import Limits, Program, Sandbox
from core.sandbox.confined import Confined


@dataclass(frozen=True)
class Escape:
    """One try."""

    what: str
    held: bool
    came: str
    """What the program met with, in a few words."""


_DENIED = "PermissionError"


def escapes(sandbox: Sandbox | None = None) -> list[Escape]:
    """Try them all; takes about two seconds."""
    with _server() as port, tempfile.NamedTemporaryFile(prefix="winnow-secret-") as secret:
        written = Path(f"{secret.name}-written")
        tries = (
            (
                "reach a server on this machine",
                f"socket.create_connection(('127.0.0.1', {port}), 1)",
                _DENIED,
            ),
            ("read a file outside", f"open({secret.name!r}).read()", _DENIED),
            ("read the home folder", f"os.listdir({str(Path.home())!r})", _DENIED),
            ("write a file outside", f"open({str(written)!r}, 'w')", _DENIED),
            ("start another process", "os.fork()", _DENIED),
            ("end its parent", "os.kill(os.getppid(), 9)", _DENIED),
            ("take all memory", "bytearray(1 << 40)", "MemoryError"),
            ("run for ever", "while True: pass", "time"),
            ("write for ever", "while True: print('x' * 1000)", "output"),
        )
        try:
            return [_tried(sandbox or Confined(), *one) for one in tries]
        finally:
            written.unlink(missing_ok=True)


def _tried(sandbox: Sandbox, what: str, code: str, expected: str) -> Escape:
    """The code must end by the expected limit, or with the expected error and no other way."""
    limits = Limits(time_s=1.0, memory_mb=256, output_bytes=10_000)
    try:
        ran = sandbox.run(Program(code=f"import os, socket\n{code}", limits=limits))
    except SandboxError as e:
        return Escape(what, True, str(e))
    last = ran.stderr.strip().rpartition("\n")[2]
    if ran.ended in ("time", "output"):
        return Escape(what, ran.ended == expected, f"stopped at its limit of {ran.ended}")
    held = ran.ended != "done" and last.startswith(expected)
    return Escape(what, held, last.partition(": '")[0][:80] or "nothing stopped it")


@contextlib.contextmanager
def _server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
