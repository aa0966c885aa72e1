"""`winnow app`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from core.cli.desk import Desk, verb
from core.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
APP = Path(__file__).parents[2] / "app.py"


@verb(None, "app")
@click.option("--port", type=int, default=8501, show_default=True)
@click.option(
    "--address", default="127.0.0.1", show_default=True, help="Whoever reaches it can decide: keep it local."
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="What browsers call this server besides 127.0.0.1 and localhost; several times for several.",
)
def app(desk: Desk, port: int, address: str, hosts: tuple[str, ...]) -> None:
    """Serve the web app until Ctrl-C."""
    desk.code = serve(desk.workspace.folder, port, address, hosts)


def serve(folder: Path, port: int, address: str = "127.0.0.1", hosts: Sequence[str] = ()) -> int:
    """Run the app on a workspace until it ends; returns its exit code.

    Args:
        folder: the workspace.
        port: where it listens.
        address: on which network.
        hosts: what browsers call it; where it listens beyond this machine and none is named, any name will do.
    """
    if not APP.is_file():
        raise InputError(f"{APP} is missing: install Winnow from its checkout with `pip install -e .`.")
    command = [sys.executable, "-m", "streamlit", "run", str(APP)]
    command += ["--server.port", str(port), "--server.address", address]
    named = hosts or (() if address in LOOPBACK else ("*",))
    for host in (*LOOPBACK, *named) if named else ():
        command += ["--server.allowedHosts", host]
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
