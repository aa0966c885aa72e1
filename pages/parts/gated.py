"""A long text behind a gate: its beginning and its end, more of it in steps, the whole as a file when asked for.

What is shown is what is stored, character for character; of what is looked for every place is marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import streamlit as st

from core.workspace.reading import SHOWN, Excerpt
from pages.parts import frame, safe, session
from pages.parts.safe import Markup, joined, markup

STAGES = (SHOWN, 20_000, 60_000, 100_000)
"""Characters of the beginning, each after one more press."""
MARKS = 500
"""Places that are marked in one text."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\^_]")
KEY = "w_more_"


def head(key: str) -> int:
    """Characters of the beginning that are wanted."""
    found = session.get(KEY + key)
    return found if isinstance(found, int) else SHOWN


def show(
    of: Excerpt,
    key: str,
    *,
    whole: Callable[[], bytes] | None = None,
    name: str = "text.txt",
    find: str = "",
    look: str = "",
) -> None:
    """Draw a text.

    Args:
        of: what was read of it.
        key: of its widgets; the same that `head` was asked with.
        whole: makes the file of all of it, when it is asked for.
        name: of the file.
        find: what is marked.
        look: further CSS classes.
    """
    if not of.size:
        frame.note("Empty.")
        return
    _piece(of.head, find, look)
    if of.hidden > 0:
        _gap(of, key)
        _piece(of.tail, find, look)
    _warn(of)
    if of.hidden > 0 and whole:
        st.download_button(
            "Download the whole text",
            whole,
            name,
            "text/plain",
            key=f"file_{key}",
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
        )


def _gap(of: Excerpt, key: str) -> None:
    now = head(key)
    following = next((n for n in STAGES if n > now), None)
    with st.container(horizontal=True, vertical_alignment="center", key=f"gap_{key}"):
        safe.html(
            '<span class="w-note">{hidden} of {size} characters are not shown here{end}</span>',
            hidden=f"{of.hidden:,}",
            size=f"{of.size:,}",
            end="." if following else "; the file has them all.",
        )
        if following:
            st.button(
                f"Show {following - now:,d} more",
                key=f"more_{key}",
                type="tertiary",
                icon=":material/expand_more:",
                on_click=session.put,
                args=(KEY + key, following),
            )


def _piece(text: str, find: str, look: str) -> None:
    safe.html(
        '<div class="w-exact {look}" dir="auto">{text}</div>',
        look=look,
        text=joined(marked(text, find)) if find else text,
    )


def marked(text: str, find: str) -> Iterator[Markup]:
    """A text with what is looked for marked; without the marks it is the text, exactly."""
    at = 0
    for number, one in enumerate(re.finditer(re.escape(find), text, re.IGNORECASE)):
        if number == MARKS:
            break
        yield markup("{before}<mark>{found}</mark>", before=text[at : one.start()], found=one[0])
        at = one.end()
    yield markup("{rest}", rest=text[at:])


def _warn(of: Excerpt) -> None:
    """Name what cannot be seen in the part that is shown."""
    text = of.head + of.tail
    if escapes := len(ESCAPES.findall(text)):
        safe.html(
            '<div class="w-warn">Holds {n} terminal sequence{s} (ANSI); they are shown as text and do nothing.</div>',
            n=f"{escapes:,}",
            s="" if escapes == 1 else "s",
        )
    safe.warn_hidden(text)
