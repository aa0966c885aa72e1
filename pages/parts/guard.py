"""What goes wrong on purpose is one red line: no page shows a stack trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from core.errors import WinnowError
from pages.parts import safe


def red_line(message: object) -> None:
    safe.html('<div class="w-error" role="alert">{message}</div>', message=message)


@contextmanager
def guard(*, stop: bool = False) -> Iterator[None]:
    """Show an error of Winnow's own as one red line.

    Args:
        stop: end the page there, where nothing can be drawn without what failed.
    """
    try:
        yield
    except WinnowError as e:
        red_line(e)
        if stop:
            st.stop()
