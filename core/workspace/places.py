"""Which workspaces there are: the configured one, its siblings, and those that were opened lately.

1. A workspace is called by a name from this list, never by a path: an address of the web app can name nothing else.
2. What was opened lately is kept in a small file of the user's, outside every workspace: `WINNOW_RECENT`, else the
   user's folder for state. `WINNOW_RECENT=` (empty) keeps and offers none.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from core.errors import InputError, NotFoundError
from core.workspace.workspace import DATABASE, Workspace

RECENT = "WINNOW_RECENT"
KEPT = 12
"""Recent workspaces that are remembered."""
SIBLINGS = 200
"""Entries of the configured workspace's own folder that are looked at."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,62}[A-Za-z0-9_]|[A-Za-z0-9]")


class Places:
    """The workspaces that can be chosen from, by name."""

    def __init__(self, configured: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.configured = configured
        self._recent = recent_file(environ)

    def all(self) -> dict[str, Path]:
        """Folders by name, the configured one first; of two that are called alike, the later says where it is."""
        found: dict[str, Path] = {}
        for folder in dict.fromkeys((self.configured, *self._siblings(), *self._lately())):
            found.setdefault(next(n for n in _names(folder) if n not in found), folder)
        return found

    def find(self, name: str) -> Path:
        """The folder of a workspace.

        Raises:
            NotFoundError: none is called so.
        """
        places = self.all()
        if name not in places:
            raise NotFoundError(f"There is no workspace {name!r} here; there are: {', '.join(places)}.")
        return places[name]

    def create(self, name: str) -> str:
        """Make an empty workspace beside the configured one; gives the name that it is called by.

        Raises:
            InputError: that is no name for a folder, or something of that name is there.
        """
        name = name.strip()
        if not NAME.fullmatch(name):
            raise InputError(
                "Name a workspace with 1 to 64 letters, digits, spaces, dots, dashes or underscores, beginning with a "
                "letter or a digit."
            )
        folder = self.configured.parent / name
        if any(p.name.casefold() == name.casefold() for p in self.configured.parent.iterdir()):
            raise InputError(
                f"There is something called {name!r} beside this workspace; choose another name."
            )
        Workspace(folder)
        self.remember(folder)
        return next(n for n, there in self.all().items() if there == folder)

    def remember(self, folder: Path) -> None:
        """Put a workspace at the head of those that were opened lately. It is a convenience: no error comes of it."""
        if self._recent is None:
            return
        before = self._lately()
        kept = list(dict.fromkeys((folder, *before)))[:KEPT]
        if kept == before:
            return
        with suppress(OSError):
            self._recent.parent.mkdir(parents=True, exist_ok=True)
            partial = self._recent.with_name(f".{self._recent.name}.{os.getpid()}")
            partial.write_text(json.dumps([str(p) for p in kept], indent=1), encoding="utf-8")
            partial.replace(self._recent)

    def _siblings(self) -> list[Path]:
        try:
            beside = sorted(self.configured.parent.iterdir())[:SIBLINGS]
            return [p for p in beside if not p.is_symlink() and (p / DATABASE).is_file()]
        except OSError:
            return []

    def _lately(self) -> list[Path]:
        """Those that are still there."""
        if self._recent is None:
            return []
        try:
            named = json.loads(self._recent.read_text(encoding="utf-8"))
            paths = [Path(each) for each in named if isinstance(each, str)] if isinstance(named, list) else []
            return [p for p in paths if p.is_absolute() and (p / DATABASE).is_file()][:KEPT]
        except (OSError, ValueError):
            return []


def recent_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where the workspaces that were opened lately are kept; None where they are not to be."""
    if RECENT in environ:
        return Path(environ[RECENT]) if environ[RECENT] else None
    if sys.platform == "win32" and (folder := environ.get("LOCALAPPDATA")):
        return Path(folder) / "winnow" / "recent.json"
    folder = environ.get("XDG_STATE_HOME", "")
    base = (
        Path(folder)
        if os.path.isabs(folder)
        else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    )
    return base / "winnow" / "recent.json"


def _names(folder: Path) -> list[str]:
    """What a workspace may be called, the best first: `demo`, `demo in projects`, the whole path."""
    return [folder.name, f"{folder.name} in {folder.parent.name}", str(folder)]
