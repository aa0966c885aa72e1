"""`winnow backup`, `restore`, `doctor` and `redact`: what may happen to a workspace, and what helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.cli.desk import Desk, plural, verb

if TYPE_CHECKING:
    from core.workspace.care import Care


def _care(desk: Desk) -> Care:
    """Without opening the workspace: it may be damaged."""
    from core.workspace import workspace_path
    from core.workspace.care import Care

    return Care(workspace_path(desk.folder))


@verb(None, "backup")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def backup(desk: Desk, file: Path | None) -> None:
    """Copy a workspace into one file, consistently, while it is used.

    FILE is the file, or a folder for it; by default it goes into backups/ of the workspace, named by the time. A file
    that is there is never written over. The backup is checked before it gets its name. Packs are not in it: the same
    version gives the same bytes again. It holds everything that the workspace holds: guard it alike.
    """
    made = _care(desk).backup(file, desk.who)
    counts = made.manifest.counts
    desk.answer(
        made,
        f"{made.path}: version {made.manifest.version}, {plural(counts.get('rollouts', 0), 'rollout')},"
        f" {plural(counts.get('proposals', 0), 'proposal')}; {made.size:,} bytes, checked.",
        f"To go back to it: winnow restore {made.path}",
    )


@verb(None, "restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(desk: Desk, file: Path) -> None:
    """Put a backup in the place of a workspace; what was there is kept as a backup beside it.

    FILE is what `winnow backup` made, or a copy from before an upgrade (winnow.before-....db). It is checked first; one
    of a newer Winnow is refused. Nothing happens while a worker or a run is at work. Ids that were given after the
    backup will be given again.
    """
    done = _care(desk).restore(file, desk.who)
    manifest = done.manifest
    lines = [
        f"The workspace is at version {manifest.version} again"
        + (f", as of {manifest.made_at}." if manifest.made_at else ".")
    ]
    if done.kept is not None:
        lines.append(f"What was there is kept in {done.kept}.")
    desk.answer(done, *lines, f"To go back: {done.back}" if done.back.startswith("winnow ") else done.back)
