"""Processes in which math-verify works, since an expression that never ends can only be ended with its process.

They start when they are first needed, at most one a core, remember nothing, and end with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

START_S = 90.0
"""Loading sympy takes seconds on a machine that is busy."""

_CHILD = str(Path(__file__).with_name("math_child.py"))
_ROOM = threading.BoundedSemaphore(os.cpu_count() or 1)
_idle: list[_Helper] = []
_lock = threading.Lock()


def ask(job: dict[str, object], time_s: float) -> dict[str, Any] | str:
    """What math-verify says of a job, or in one sentence why it could not; blocks.

    Returns:
        {"gold": what was read of the right answer, or None; "answer": likewise; "equal": bool}.
    """
    with _ROOM:
        with _lock:
            helper = _idle.pop() if _idle else None
        helper = helper or _Helper()
        try:
            said = helper.ask({**job, "time_s": time_s}, time_s)
        except BaseException:  # whatever stopped us, the helper is in the middle of something; raised again
            helper.end()
            raise
        if isinstance(said, str):
            helper.end()
            return said
        with _lock:
            _idle.append(helper)
        return said


class _Helper:
    """One process, and a thread that reads what it says (a pipe cannot be waited for on Windows)."""

    def __init__(self) -> None:
        kept = {n: v for n, v in os.environ.items() if n in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept,
            encoding="utf-8",
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.ready = False

    def ask(self, job: dict[str, object], time_s: float) -> dict[str, Any] | str:
        try:
            if not self.ready:
                if self.lines.get(timeout=START_S) != "ready\n":
                    return "math-verify could not be started; is it installed?"
                self.ready = True
            assert self.process.stdin is not None  # asked for
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=time_s)
        except queue.Empty:
            return f"math-verify did not come to an end in {time_s:g} s"
        except OSError:
            line = ""
        if not line:
            return "math-verify ended without an answer"
        verdict: dict[str, Any] = json.loads(line)
        return verdict

    def _read(self) -> None:
        assert self.process.stdout is not None  # asked for
        with contextlib.suppress(ValueError, OSError):  # closed under our hands
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put("")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@atexit.register
def _end_all() -> None:
    with _lock:
        while _idle:
            _idle.pop().end()
