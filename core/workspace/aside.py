"""Commands that are waited for, each in a process of its own with a time-out: the web process never does it itself.

A page stands still meanwhile; what takes minutes is begun by `core.workspace.alongside` and never waited for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.errors import BusyError
from core.roles import Role, check
from core.workspace.command import Command

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
    command = Command(folder, arguments)
    try:
        if not command.wait(within_s):
            raise BusyError(
                f"`winnow {' '.join(arguments)}` was not done within {within_s:.0f} s and was ended; "
                "in a terminal it has all the time that it needs."
            )
        return command.answer()
    finally:
        command.close()
