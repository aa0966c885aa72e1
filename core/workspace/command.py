"""One `winnow` command in a process of its own: started, read, and ended with all that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from core.errors import InputError

ROOT = Path(__file__).parents[2]
SAID = 400
"""Characters of what a process said at last that are shown."""
USER = "WINNOW_USER"


class Command:
    """`winnow ARGUMENTS --json` on a workspace. It writes to files, so that nobody has to read what it says at once."""

    def __init__(
        self, folder: Path, arguments: Sequence[str], *, actor: str = "", asked: bytes = b""
    ) -> None:
        """Start it.

        Args:
            folder: the workspace.
            arguments: the command.
            actor: who asks for it, in the log; empty = who runs this process.
            asked: its standard input.
        """
        self.arguments = tuple(arguments)
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115  # closed with it
        with tempfile.TemporaryFile() as given:
            given.write(asked)
            given.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "core", *arguments, "--json", "--workspace", str(folder)],
                stdin=given,
                stdout=self._out,
                stderr=self._err,
                cwd=ROOT,
                env={**os.environ, **({USER: actor} if actor else {})},
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, within_s: float) -> bool:
        """Wait for its end; gives whether it came in so many seconds."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def answer(self) -> Any:
        """What it said, once it has ended, whether well or with findings.

        Raises:
            InputError: it refused, or said nothing that can be read.
        """
        self._out.seek(0)
        try:
            answer: Any = json.load(self._out)
        except ValueError:
            self._err.seek(0)
            last = self._err.read().decode("utf-8", "replace").strip()[-SAID:]
            how = f"`winnow {' '.join(self.arguments)}` ended with code {self._process.returncode}."
            raise InputError(last or how) from None
        if isinstance(answer, dict) and set(answer) == {"error"}:
            raise InputError(str(answer["error"]))
        return answer

    def last_line(self) -> str:
        """The last whole line of what it told of itself."""
        return last_line(self._err)

    def end(self) -> None:
        """End it where it runs, with all that it started."""
        if not self.running:
            return
        if os.name == "posix":
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, and keep nothing of what it said."""
        self.end()
        self._out.close()
        self._err.close()


def last_line(err: IO[bytes]) -> str:
    """The last whole line of a file that a process still writes; where it writes on is not moved."""
    size = os.fstat(err.fileno()).st_size
    if not size or not hasattr(os, "pread"):
        return ""
    lines = os.pread(err.fileno(), SAID, max(0, size - SAID)).decode("utf-8", "replace").rsplit("\n", 2)
    return lines[-2].strip() if len(lines) > 1 else ""
