"""Commands that take minutes, each in a process of its own: begun here, found again by a key, and never waited for.

A page that is drawn anew, or in another tab, finds the same one. What came of it is kept as long as this process lives;
replies of models are in the cache of their workspace, so the same again is fast. Compare `core.workspace.aside`,
which waits, and `core.jobs`, whose work outlives the app.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.record import Record
from core.roles import Role, check
from core.workspace.command import Command

WITHIN_S = 180.0
"""Seconds after which a command is ended, where nothing else is said."""
KEPT = 20
"""Commands that are kept, of all workspaces together; one that runs is never let go for others."""


class Standing(Record):
    """Where a command is."""

    state: str
    """"none", "running", "done" or "failed"."""
    since_s: float = 0.0
    """Seconds that it has been running."""
    answer: Any = None
    """What it said, as JSON."""
    trouble: str = ""
    """Why there is nothing, in one sentence."""
    said: str = ""
    """What it told last of how far it is: `reading a.jsonl: 1,000 of 5,000`."""


@dataclass
class _Going:
    command: Command
    at: float
    """Monotonic seconds."""
    within_s: float
    result: Standing | None = None


_going: dict[tuple[Path, str], _Going] = {}
_lock = threading.RLock()
"""Two tabs that begin the same at once start one process."""


def begin(
    folder: Path,
    key: str,
    *arguments: str,
    role: Role,
    actor: str = "",
    asked: bytes = b"",
    within_s: float = WITHIN_S,
) -> None:
    """Start `winnow ARGUMENTS --json` on a workspace; where the same runs already, it is left alone.

    Args:
        folder: the workspace.
        key: what it is found by.
        arguments: the command.
        role: of who asks for it: the process itself is a publisher.
        actor: who asks for it, in the log; empty = who runs this process.
        asked: its standard input.
        within_s: after so many seconds it is ended.

    Raises:
        TrustError: it asks a model, which takes a reviewer.
    """
    check(role, "reviewer", arguments[0])
    with _lock:
        there = _going.get((folder, key))
        if there and there.command.running:
            return
        forget(folder, key)
        command = Command(folder, arguments, actor=actor, asked=asked)
        _going[folder, key] = _Going(command, time.monotonic(), within_s)
        ended = [one for one, going in _going.items() if not going.command.running]
        for oldest in ended[: max(0, len(_going) - KEPT)]:
            forget(*oldest)


def standing(folder: Path, key: str) -> Standing:
    """Where a command is."""
    with _lock:
        going = _going.get((folder, key))
        if going is None:
            return Standing(state="none")
        since = time.monotonic() - going.at
        if going.result is None:
            if going.command.running and since < going.within_s:
                return Standing(state="running", since_s=since, said=going.command.last_line())
            going.result = _ended(going)
        return going.result


def reads(below: str) -> bool:
    """Whether a command that runs was given a path below a folder."""
    with _lock:
        running = [going.command for going in _going.values() if going.command.running]
    return any(below in argument for command in running for argument in command.arguments)


def forget(folder: Path, key: str) -> None:
    """End a command where it runs, and keep nothing of it."""
    with _lock:
        if going := _going.pop((folder, key), None):
            going.command.close()


def _ended(going: _Going) -> Standing:
    late = going.command.running
    going.command.end()
    if late:
        return Standing(
            state="failed", trouble=f"It was not done within {going.within_s:.0f} s and was ended."
        )
    try:
        return Standing(state="done", answer=going.command.answer())
    except InputError as e:
        return Standing(state="failed", trouble=str(e))
