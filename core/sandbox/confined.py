"""Runs Python code in a process of its own that can reach nothing; refuses where that cannot be had.

1. **What confines** is the kernel: Landlock and a filter of system calls on Linux, a `sandbox-exec` profile on
   macOS; neither needs root or an extra package. The process confines itself before it reads the program, tries
   to break out, and runs the program only where that failed (`core.sandbox.child`).
2. **What is watched** from outside: wall clock, output, the size of the folder, threads; on macOS also memory.
3. There is one process and never a second one, so that killing it ends everything.
4. At most as many programs run at once as there are cores; others wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Literal

from core.errors import SandboxError, TrustError
from core.ports import Limits, Program, Ran
from core.sandbox import READY, landlock, macos, places, seccomp
from core.trust import CodeUse, check_code

START_S = 30.0
"""Python has so long to start and to be confined, on a machine that is busy."""
LOOK_S = 0.1
"""How often the folder and the threads are looked at."""
MAX_THREADS = 64

_ROOM = threading.BoundedSemaphore(os.cpu_count() or 1)
_ROOT = str(Path(__file__).parents[2])
_START = (
    "import sys; sys.path.insert(0, sys.argv[3]); from core.sandbox.child import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]))"
)

Ended = Literal["done", "error", "time", "memory", "output"]


@dataclass(frozen=True)
class Confined:
    """A `core.ports.Sandbox`."""

    use: CodeUse | None = None
    """Whose code it is: the trust file must allow it. None = our own, for the self-test."""

    @property
    def confines(self) -> str:
        """What is confined on this machine, and how, in one sentence."""
        if why := cannot():
            return why
        how = f"Landlock {landlock.abi()} and seccomp" if sys.platform == "linux" else "sandbox-exec, untried"
        return (
            f"A program ({how}) has no network and no second process, reads Python's own files and writes only in its "
            "folder (that other files exist it can see, what is in them it cannot), and is stopped at its limits of "
            "time, memory, threads, output and file size."
        )

    def run(self, program: Program) -> Ran:
        """Run a program to its end; blocks.

        Raises:
            SandboxError: code cannot be confined here, or the trust file does not allow it. Nothing ran.
        """
        if why := cannot():
            raise SandboxError(why)
        if self.use is not None:
            try:
                check_code(self.use)
            except TrustError as e:
                raise SandboxError(str(e)) from e
        with _ROOM, _folder(program.folder) as folder:
            return _run(program, folder)


@cache
def cannot() -> str:
    """Why code cannot be confined on this machine; empty where it can."""
    system = platform.system()
    if system == "Linux":
        if not seccomp.supported():
            return (
                f"Code cannot be confined here: this kernel ({platform.machine()}) filters no system calls."
            )
        if not landlock.abi():
            return (
                "Code cannot be confined here: this kernel has no Landlock (it comes with Linux 5.13, and must be "
                "among the security modules that are switched on)."
            )
        return ""
    if system == "Darwin":
        return "" if os.path.exists(macos.TOOL) else f"Code cannot be confined here: {macos.TOOL} is missing."
    return f"Code cannot be confined on {system or 'this system'}: use Linux, or WSL on Windows."


@contextlib.contextmanager
def _folder(given: str | None) -> Iterator[str]:
    if given is not None:
        folder = os.path.realpath(given)
        if not os.path.isdir(folder):
            raise SandboxError(f"The working folder {given} is not there; nothing ran.")
        yield folder
        return
    folder = os.path.realpath(tempfile.mkdtemp(prefix="winnow-"))
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # what cannot be removed is left to the system's own tidying
            places.take_away(folder)


def _run(program: Program, folder: str) -> Ran:
    limits = program.limits
    job = {
        "code": program.code,
        "folder": folder,
        "beside": os.path.dirname(folder),
        "readable": places.readable(),
        "parent": os.getpid(),
        "time_s": limits.time_s,
        "memory_bytes": limits.memory_mb << 20,
        "file_bytes": limits.files_mb << 20,
    }
    with contextlib.ExitStack() as stack:
        job_file = stack.enter_context(tempfile.TemporaryFile())
        job_file.write(json.dumps(job).encode())
        job_file.seek(0)
        stdin = stack.enter_context(tempfile.TemporaryFile())
        stdin.write(program.stdin.encode("utf-8", "replace"))
        stdin.seek(0)
        status, theirs = os.pipe()
        stack.callback(os.close, status)
        command = [
            sys.executable,
            "-I",
            "-B",
            "-X",
            "utf8",
            "-c",
            _START,
            str(job_file.fileno()),
            str(theirs),
            _ROOT,
        ]
        if sys.platform == "darwin":
            command = [macos.TOOL, "-p", macos.profile(folder, job["readable"]), *command]
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=_environment(folder),
                pass_fds=(job_file.fileno(), theirs),
                start_new_session=True,
            )
        except OSError as e:
            raise SandboxError(f"Python could not be started to run a program: {e.strerror or e}.") from e
        finally:
            os.close(theirs)
        stack.callback(_end, process)
        _await_confinement(process, status)
        return _Watch(process, limits, folder).to_the_end()


def _environment(folder: str) -> dict[str, str]:
    """Nothing of ours: keys are in the environment."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"HOME": folder, "TMPDIR": folder, "PATH": "", "LANG": "C.UTF-8", **one}


def _await_confinement(process: subprocess.Popen[bytes], status: int) -> None:
    said = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(status, selectors.EVENT_READ)
        until = time.monotonic() + START_S
        while waiting.select(max(0.0, until - time.monotonic())):
            more = os.read(status, 2000)
            said += more
            if not more:
                break
    if said != READY:
        _end(process)
        why = said.decode("utf-8", "replace") or (
            process.stderr.read(2000) if process.stderr else b""
        ).decode("utf-8", "replace")
        raise SandboxError(
            f"A program could not be confined, so it did not run: {' '.join(why.split())[-300:]}."
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


class _Watch:
    """One program under way."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits, folder: str) -> None:
        self.process, self.limits, self.folder = process, limits, folder
        self.started = time.monotonic()
        self.pipes = {"stdout": _pipe(process.stdout), "stderr": _pipe(process.stderr)}
        self.read = {"stdout": bytearray(), "stderr": bytearray()}

    def to_the_end(self) -> Ran:
        stopped, note = self._watch()
        _end(self.process)
        code = self.process.returncode
        out, err = (
            bytes(self.read[n][: self.limits.output_bytes]).decode("utf-8", "replace") for n in self.read
        )
        for pipe in self.pipes.values():
            pipe.close()
        return Ran(
            ended=stopped or _ended(code, err),
            exit_code=None if stopped else code,
            stdout=out,
            stderr=f"{err}\n[{note}]" if note else err,
            duration_s=time.monotonic() - self.started,
        )

    def _watch(self) -> tuple[Ended | None, str]:
        """Read until it ends by itself (None), or must be stopped, and why."""
        deadline, look = self.started + self.limits.time_s, self.started
        with selectors.DefaultSelector() as waiting:
            for name, pipe in self.pipes.items():
                waiting.register(pipe, selectors.EVENT_READ, name)
            while waiting.get_map():
                for key, _ in waiting.select(LOOK_S):
                    more = os.read(key.fd, 65536)
                    if not more:
                        waiting.unregister(key.fileobj)
                    self.read[key.data] += more
                    if len(self.read[key.data]) > self.limits.output_bytes:
                        return "output", ""
                now = time.monotonic()
                if now >= deadline:
                    return "time", ""
                if now >= look:
                    look = now + LOOK_S
                    if why := self._looked():
                        return why
            try:  # it may have closed its output and gone on
                self.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return "time", ""
        return None, ""

    def _looked(self) -> tuple[Ended, str] | None:
        if places.overfull(self.folder, self.limits.files_mb << 20):
            return "output", "stopped: too much in its folder"
        if sys.platform == "linux":
            if _threads(self.process.pid) > MAX_THREADS:
                return "memory", f"stopped: more than {MAX_THREADS} threads"
        elif _resident_mb(self.process.pid) > self.limits.memory_mb:
            return "memory", ""
        return None


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # asked for
    return pipe


def _ended(code: int, stderr: str) -> Ended:
    if code == 0:
        return "done"
    if code == -signal.SIGXCPU:
        return "time"
    last = stderr.rstrip().rpartition("\n")[2]
    return "memory" if last.startswith("MemoryError") else "error"


def _threads(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return int(status.partition("\nThreads:")[2].split(maxsplit=1)[0] or 0)


def _resident_mb(pid: int) -> int:
    """Memory of a process on macOS, which sets no limit on it."""
    ps = shutil.which("ps") or "/bin/ps"
    said = subprocess.run(
        [ps, "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return int(said.strip() or 0) >> 10
