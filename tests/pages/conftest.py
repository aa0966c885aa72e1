"""What tests of the pages share: a filled workspace, the one that the app is pointed at, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamlit.elements.widgets.button import ButtonMixin
from streamlit.errors import StreamlitPageNotFoundError

from core.workspace import Workspace
from tests.browser import browsing
from tests.pages.workspaces import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with something of everything. It is copied and never written to."""
    folder = tmp_path_factory.mktemp("filled") / "workspace"
    fill(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a workspace that the app is pointed at."""
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("WINNOW_USER", "ann")
    return tmp_path / "workspace"


@pytest.fixture
def ws(folder: Path, filled: Path) -> Workspace:
    """A copy of the filled workspace that the app is pointed at."""
    shutil.copytree(filled, folder)
    return Workspace(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, one a module: what one leaves behind is no other's."""
    with browsing() as found:
        yield found


@pytest.fixture(autouse=True)
def a_page_alone_draws_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test may open a page without `app.py`: nothing is registered then that a link could lead to."""
    page_link: Callable[..., Any] = ButtonMixin._page_link

    def lenient(self: ButtonMixin, *arguments: Any, **named: Any) -> Any:
        try:
            return page_link(self, *arguments, **named)
        except StreamlitPageNotFoundError:
            return self

    monkeypatch.setattr(ButtonMixin, "_page_link", lenient)
