"""One page of a long list at a time: what is not looked at is not read."""

from __future__ import annotations

import math

import streamlit as st

from pages.parts import frame

PAGE = 25


def offset(key: str, total: int, size: int = PAGE) -> int:
    """Draw the page control of a list where there is more than one page; returns the first row's number."""
    pages = max(1, math.ceil(total / size))
    if pages == 1:
        return 0
    with st.container(horizontal=True, vertical_alignment="center"):
        number = st.pagination(pages, key=key, bind="query-params")
        first = (min(number, pages) - 1) * size
        frame.note(f"{first + 1:,}–{min(first + size, total):,} of {total:,}")
    return first
