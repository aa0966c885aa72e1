"""How users and the server's process find and recognise each other: state file and handshake.

1. The state file holds address and key, readable by this user only. It is a hint and may be stale: only a
   connection to the control port that passed the handshake means that the server is there.
2. In the handshake both sides prove that they know the key; the key itself never crosses the connection.
3. A connection admitted as `user` stays open while that process uses the server. The operating system closes it
   when the process ends, by itself or by kill -9, on every platform: that is the parent-death pipe.
4. The server admits nobody once it has decided to stop, so who was admitted has a server.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import platform
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

PROTOCOL = 1
HANDSHAKE_S = 10.0
"""Patience with the other side, which may share one busy core with the model."""
USER, VISITOR = "user", "visitor"
USED, NOTED = b"u", b"k"
"""A user says that it is about to send a request; the server has put off its idle stop."""
_MAX_LINE = 512


@dataclass(frozen=True)
class State:
    """Where the server is to be found."""

    start: str
    """Random name of this start, given by who started it."""
    pid: int
    control_port: int
    base_url: str
    """Ends in /v1."""
    key: str


@dataclass(frozen=True)
class Runtime:
    """The folder with state, lock and log of one server."""

    folder: Path

    @classmethod
    def of(cls, parent: Path, model_sha256: str) -> Runtime:
        """One server per user, model and host: a home folder may be shared between hosts, loopback is not."""
        host = re.sub(r"[^A-Za-z0-9-]", "-", platform.node())[:40]
        return cls(parent / f"{model_sha256[:12]}-{PROTOCOL}-{host}")

    @property
    def lock(self) -> Path:
        return self.folder / "start.lock"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def state(self) -> Path:
        return self.folder / "server.json"

    def prepare(self) -> None:
        """Make the folder, for this user alone.

        Raises:
            PermissionError: it belongs to someone else.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and self.folder.stat().st_uid != os.getuid():
            raise PermissionError(f"the folder {self.folder} belongs to another user")
        self.folder.chmod(0o700)

    def read(self) -> State | None:
        try:
            return State(**json.loads(self.state.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, state: State) -> None:
        scratch = self.folder / f"server.json.{state.start}"
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(state), file)
        scratch.replace(self.state)


def call(state: State, role: str) -> tuple[socket.socket, int] | None:
    """Connect to the control port and be admitted.

    Returns:
        The open connection and the number of users, this one included; None when no server of ours answers.
    """
    connection = None
    try:
        connection = socket.create_connection(("127.0.0.1", state.control_port), timeout=HANDSHAKE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        theirs, ours = _receive(connection), secrets.token_hex(16)
        _send(connection, f"{role} {ours} {_proof(state.key, role, theirs)}")
        proof, users = _receive(connection).split()
        if not hmac.compare_digest(proof, _proof(state.key, "server", ours)):
            raise ValueError("not our server")
        return connection, int(users)
    except (OSError, ValueError):
        if connection is not None:
            connection.close()
        return None


def admit(connection: socket.socket, key: str, enter: Callable[[str], int | None]) -> str | None:
    """The server's side of the handshake.

    Args:
        connection: one just accepted.
        key: the server's key.
        enter: takes the caller in and returns the number of users; None turns it away.

    Returns:
        The caller's role, or None when it was turned away. Once `enter` took a caller in, a lost connection is
        left for the caller's own reading to find.
    """
    connection.settimeout(HANDSHAKE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        ours = secrets.token_hex(16)
        _send(connection, ours)
        role, theirs, proof = _receive(connection).split()
    except (OSError, ValueError):
        return None
    if role not in (USER, VISITOR) or not hmac.compare_digest(proof, _proof(key, role, ours)):
        return None
    users = enter(role)
    if users is None:
        return None
    with contextlib.suppress(OSError):
        _send(connection, f"{_proof(key, 'server', theirs)} {users}")
    return role


def _proof(key: str, role: str, nonce: str) -> str:
    return hmac.new(key.encode(), f"{role} {nonce}".encode(), hashlib.sha256).hexdigest()


def _send(connection: socket.socket, line: str) -> None:
    connection.sendall(line.encode() + b"\n")


def _receive(connection: socket.socket) -> str:
    """One line. The sides take turns, so nothing is ever read past it."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = connection.recv(_MAX_LINE - len(line))
        if not chunk:
            raise ConnectionError("closed during the handshake, or too much said")
        line += chunk
    return line.decode("ascii", errors="replace").strip()
