"""Inside the process that runs a program: confine it, make sure of it, then run the code.

Started by `core.sandbox.confined`; needs nothing but the standard library. Nothing of the program runs before `READY`
is written, and that is written only where a try to break out has failed.
"""

from __future__ import annotations

import ctypes
import errno
import json
import linecache
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from core.sandbox import READY, landlock, seccomp

NAME = "program.py"
"""What the program is called in its traces."""


def main(job: int, status: int) -> None:
    """Run the job that is written in a file.

    Args:
        job: descriptor of the file.
        status: descriptor that says `READY`, or in one sentence why the program may not run.
    """
    with os.fdopen(job, encoding="utf-8") as file:
        task = json.load(file)
    try:
        _confine(task)
        _try_to_break_out(task)
    except Exception as e:  # noqa: BLE001  whatever it is: nothing may run
        os.write(status, f"{type(e).__name__}: {e}".encode())
        os._exit(1)
    os.write(status, READY)
    os.close(status)
    _run(task["code"], task["folder"])


def _confine(task: dict[str, Any]) -> None:
    os.chdir(task["folder"])
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, int(task["time_s"]) + 2),
        (resource.RLIMIT_FSIZE, task["file_bytes"]),
        (resource.RLIMIT_NOFILE, 128),
        (resource.RLIMIT_AS, task["memory_bytes"]),
    ):
        _lower(kind, value)
    if sys.platform != "linux":
        return  # macOS: the profile holds since the start
    libc = ctypes.CDLL(None, use_errno=True)
    _drop_capabilities(libc)
    libc.prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG: it dies with whoever waits for it
    if os.getppid() != task["parent"]:
        raise OSError("whoever started it is gone")
    landlock.confine(task["folder"], task["readable"])
    seccomp.confine(os.getpid())


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    soft = limit - 1 if kind == resource.RLIMIT_CPU and limit > 1 else limit  # SIGXCPU tells what it died of
    try:
        resource.setrlimit(kind, (soft, limit))
    except (ValueError, OSError):
        if sys.platform == "linux":  # macOS does not know each; the parent watches the memory there
            raise


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Root without any of its privileges; nothing changes for an ordinary user."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())):
        raise OSError(ctypes.get_errno(), "capabilities")


def _try_to_break_out(task: dict[str, Any]) -> None:
    """What must fail in here: an attempt that does not is the end, before anything else runs."""
    import _socket

    try:
        _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect(("127.0.0.1", 9))
    except PermissionError:
        pass
    except OSError as e:
        raise RuntimeError("the network can be reached") from e
    else:
        raise RuntimeError("the network can be reached")
    outside = f"{task['folder']}-outside"
    attempts: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: os.listdir(task["beside"]), "files outside of the folder can be read"),
        (lambda: os.open(outside, os.O_WRONLY | os.O_CREAT), "files outside of the folder can be written"),
        (os.fork, "processes can be started"),
    )
    for attempt, what in attempts:
        try:
            attempt()
        except OSError as e:
            if e.errno in (errno.EPERM, errno.EACCES, errno.EROFS):  # a container's disk may be read-only
                continue
        raise RuntimeError(what)


def _run(code: str, folder: str) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "core"]:
        del sys.modules[name]
    sys.path[0] = folder
    sys.argv = [NAME]
    module = ModuleType("__main__")
    module.__dict__["__file__"] = NAME
    sys.modules["__main__"] = module
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    try:
        exec(compile(code, NAME, "exec", dont_inherit=True), module.__dict__)
    except SystemExit:
        raise
    except BaseException as e:  # noqa: BLE001  shown as Python would, without the frames of this file
        trace = e.__traceback__.tb_next if e.__traceback__ else None
        traceback.print_exception(type(e), e, trace)
        sys.exit(1)
