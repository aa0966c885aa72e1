"""Commands that take long or ask a model, run in a process of their own with a time-out: never in the web process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from core.errors import BusyError, InputError
from core.roles import Role, check

ROOT = Path(__file__).parents[2]
SAID = 400
"""Characters of what a command said that are shown."""


NEEDS: dict[str, Role] = {"backup": "publisher", "endpoints": "reviewer"}
"""What some commands take: a backup holds all that the workspace holds, and a trial asks a model. Others only look."""


def run_aside(folder: Path, *arguments: str, within_s: float, role: Role) -> Any:
    """What `winnow ARGUMENTS --json` says of a workspace, whether it ends well or with findings.

    Args:
        folder: the workspace.
        arguments: the command.
        within_s: after so many seconds it is ended.
        role: of who asks for it: the process itself is a publisher.

    Raises:
        TrustError: it takes another role.
        BusyError: it took longer.
        InputError: it refused, or said nothing that can be read.
    """
    check(role, NEEDS.get(arguments[0], "reader"), arguments[0])
    command = [sys.executable, "-m", "core", *arguments, "--json", "--workspace", str(folder)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, said = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        raise BusyError(
            f"`winnow {' '.join(arguments)}` was not done within {within_s:.0f} s and was ended; "
            "in a terminal it has all the time that it needs."
        ) from None
    finally:
        if process.poll() is None:
            _end(process)
    try:
        answer = json.loads(out)
    except ValueError:
        last = said.decode("utf-8", "replace").strip()[-SAID:]
        raise InputError(
            last or f"`winnow {' '.join(arguments)}` ended with code {process.returncode}."
        ) from None
    if isinstance(answer, dict) and set(answer) == {"error"}:
        raise InputError(str(answer["error"]))
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
