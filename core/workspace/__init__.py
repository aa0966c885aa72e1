"""Builds everything from a folder; all that the CLI and the pages call."""

from core.workspace.workspace import Overview, Workspace, workspace_path

__all__ = ["Overview", "Workspace", "workspace_path"]
