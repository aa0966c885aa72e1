"""`winnow app`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from core.cli.desk import Desk, verb
from core.errors import InputError

APP = Path(__file__).parents[2] / "app.py"


@verb(None, "app")
@click.option("--port", type=int, default=8501, show_default=True)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Whoever reaches it can decide: keep it local."
)
def app(desk: Desk, port: int, address: str) -> None:
    """Serve the web app until Ctrl-C."""
    desk.code = serve(desk.workspace.folder, port, address)


def serve(folder: Path, port: int, address: str = "127.0.0.1") -> int:
    """Run the app on a workspace until it ends; returns its exit code."""
    if not APP.is_file():
        raise InputError(f"{APP} is missing: install Winnow from its checkout with `pip install -e .`.")
    command = [sys.executable, "-m", "streamlit", "run", str(APP)]
    command += ["--server.port", str(port), "--server.address", address]
    click.echo(f"Winnow is at http://{address}:{port} (Ctrl-C stops it).", err=True)
    environment = os.environ | {"WINNOW_WORKSPACE": str(folder)}
    # The folder of app.py is where Streamlit looks for .streamlit/config.toml.
    if os.name == "posix":  # in place of this process, so that what ends it ends the server
        sys.stdout.flush()
        os.chdir(APP.parent)
        os.execve(sys.executable, command, environment)
    server = subprocess.Popen(command, env=environment, cwd=APP.parent)
    try:
        return server.wait()
    except KeyboardInterrupt:  # the way to end it; the server got the same signal
        server.wait()
        return 0
