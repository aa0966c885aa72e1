"""Builds everything from a folder; all that the CLI and the pages call."""

from core.review import Difference, Preview, differences, stale
from core.words import count_words
from core.workspace.workspace import Overview, Workspace, whoami, workspace_path

__all__ = [
    "Difference",
    "Overview",
    "Preview",
    "Workspace",
    "count_words",
    "differences",
    "stale",
    "whoami",
    "workspace_path",
]
