"""The address of a list, which Back has to find as it was.

A link that is clicked (`KEEP`): Streamlit sends the filters of the page that is left along, the server takes
them out of the address, and the browser writes that down as an entry of its own: the *list without its filter*, which
is what Back then comes to. So that entry is left out.

`st.switch_page` leaves two entries in the history of the browser: first the *list* with the address of the *thing*,
then the thing. Back comes to the first of them: without more, to a list that lost its filter. So the thing's address
carries the filter too, under other names (those of bound widgets cannot be set), and the list takes its widgets'
defaults from there: a value that is the default changes no address, so Back goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import streamlit as st
from starlette.requests import Request
from starlette.responses import RedirectResponse

from pages.parts.warm import AHEAD

INSIDE = "in_"
KEEP = """<script>
(() => {
  if (window.winnowHistory) return;
  window.winnowHistory = true;
  const push = window.history.pushState.bind(window.history);
  let leaving = false;
  let query = null;
  document.addEventListener("click", (event) => {
    const link = event.target.closest ? event.target.closest("a[href]") : null;
    leaving = link !== null && link.origin === location.origin && link.pathname !== location.pathname;
    query = null;
  }, true);
  window.history.pushState = (state, title, url) => {
    const to = new URL(url, location.href);
    if (leaving && to.pathname === location.pathname) { query = to.search; return; }
    if (leaving && query !== null) to.search = query;
    leaving = false;
    query = null;
    push(state, title, to.href);
  };
})();
</script>"""
"""Leaves out the entry of a page that is being left; what its address would have been is the address of the next."""


OWN = (KEEP, AHEAD)
"""The scripts of ours that every page has; there are no others."""


def scripts() -> None:
    """On every page, once: links leave the address of the page they are on as it is; what is slow is loaded ahead."""
    st.components.v2.component("winnow_own", html="".join(OWN))(key="w_own")


async def to_home(request: Request) -> RedirectResponse:
    """`/home` leads to the first page, which has the bare address: Streamlit knows no other one of it."""
    return RedirectResponse(f"/?{request.url.query}" if request.url.query else "/")


def inside(values: Mapping[str, object]) -> dict[str, str]:
    """Values of a list's widgets for the address of a page about one of its things; empty ones are left out."""
    return {f"{INSIDE}{key}": str(value) for key, value in values.items() if value not in ("", None)}


def handed(key: str) -> str:
    """The value that this address carries for a widget; empty where there is none."""
    return str(st.query_params.get(f"{INSIDE}{key}", ""))[:500]


def number(key: str) -> float | None:
    """The number that this address carries for a widget; None where there is none."""
    with suppress(ValueError):
        if math.isfinite(value := float(handed(key))):
            return value
    return None


def place(labels: Sequence[str], key: str, otherwise: int = 0) -> int:
    """Which of a choice's labels the address carries for it."""
    wanted = handed(key)
    return labels.index(wanted) if wanted in labels else otherwise
