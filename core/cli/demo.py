"""`winnow demo`."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import click

from core.cli.desk import Desk, verb


@verb(None, "demo")
@click.option("--fresh", is_flag=True, help="Start over; the old workspace is kept beside the new one.")
@click.option("--serve/--no-serve", default=True, show_default=True, help="Serve the app when done.")
@click.option("--port", type=int, default=8501, show_default=True)
def demo(desk: Desk, fresh: bool, serve: bool, port: int) -> None:
    """Run the whole loop on the sample project with the embedded model; again, it does only what is missing."""
    from core.demo import run_demo, story
    from core.workspace import workspace_path
    from core.workspace.workspace import DATABASE

    folder = workspace_path(desk.folder)
    if fresh and (folder / DATABASE).exists():
        kept = _move_aside(folder)
        click.echo(f"The old workspace is kept in {kept}.", err=True)
    started = time.monotonic()
    done = run_demo(desk.workspace, desk.progress)
    desk.answer(done, *story(done, time.monotonic() - started), set_aside=not done.pack_verified)
    if serve:
        from core.cli.app import serve as serve_app

        desk.code = serve_app(folder, port)


def _move_aside(folder: Path) -> Path:
    kept = folder.with_name(f"{folder.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    return folder.rename(kept)
