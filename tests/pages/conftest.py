"""What tests of pages need beside those of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.elements.widgets.button import ButtonMixin
from streamlit.errors import StreamlitPageNotFoundError


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
