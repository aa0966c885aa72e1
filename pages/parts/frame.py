"""What every page has: a title with one sentence, a flash line, cards, chips, and an empty state."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.parts import safe, session
from pages.parts.guard import red_line
from pages.parts.safe import Markup, joined, markup


def page(title: str, lead: str, *, crumb: str = "", says: bool = True) -> None:
    """Open a page.

    Args:
        title: its name, or the id that it is about.
        lead: what one can do here, in a sentence.
        crumb: what stands above the title on a page about one thing ("Group").
        says: what the last command said stands here; a page that says it elsewhere calls `say`.
    """
    above = markup('<div class="w-crumb">{crumb}</div>', crumb=crumb) if crumb else Markup()
    safe.html(
        '<header class="w-head">{above}<h1>{title}</h1><p class="w-lead">{lead}</p></header>',
        above=above,
        title=title,
        lead=lead,
    )
    if says:
        say(session.take_flash())


def say(said: tuple[str, session.Tone] | None) -> None:
    """Show what the last command said, good or bad; nothing where it said nothing."""
    if not said:
        return
    message, tone = said
    if tone == "bad":
        red_line(message)
    else:
        safe.html('<div class="w-done" role="status">{message}</div>', message=message)


def go(target: str, **query: str) -> None:
    """Open another page.

    Never `st.switch_page` without a query: it refuses to leave a page whose address holds a filter.
    """
    st.switch_page(target, query_params=query)


def section(title: str, note: str = "") -> None:
    beside = markup('<span class="w-note">{note}</span>', note=note) if note else Markup()
    safe.html('<div class="w-section"><h2>{title}</h2>{beside}</div>', title=title, beside=beside)


def note(text: str) -> None:
    safe.html('<p class="w-note">{text}</p>', text=text)


def chip(text: object, tone: str = "") -> Markup:
    """A small label: tone is "", "accent", "good", "bad" or "quiet"."""
    return markup('<span class="w-chip {tone}">{text}</span>', tone=tone, text=text)


def stats(items: Sequence[tuple[object, str]]) -> None:
    """Big numbers with their names, side by side."""
    cells = joined(
        markup('<div class="w-stat"><b>{value}</b><span>{name}</span></div>', value=value, name=name)
        for value, name in items
    )
    safe.html('<div class="w-stats">{cells}</div>', cells=cells)


def facts(items: Sequence[tuple[str, object]]) -> None:
    """Names and values, a line each."""
    rows = joined(markup("<dt>{name}</dt><dd>{value}</dd>", name=name, value=value) for name, value in items)
    safe.html('<dl class="w-facts">{rows}</dl>', rows=rows)


def card(key: str, content: Markup, label: str, *, current: bool = False) -> bool:
    """A card that can be clicked anywhere; `label` is what a screen reader says. Returns whether it was clicked.

    The button lies invisibly over the content: labels of buttons read Markdown, the content is exact.
    """
    with st.container(key=f"card_{key}", gap=None):
        safe.html(
            '<div class="w-card {current}">{content}</div>',
            current="current" if current else "",
            content=content,
        )
        return st.button(safe.label(label), key=f"open_{key}")


def way(key: str, content: Markup, label: str, target: str, *, look: str = "", **query: str) -> None:
    """Content that leads somewhere wherever it is clicked: a real link, so it opens in a new tab, too.

    Like a card, the link lies invisibly over the content; unlike one, it cannot be used in a page that runs alone.

    Args:
        key: of the element.
        content: what is seen.
        label: what a screen reader says.
        target: the page.
        look: further CSS classes.
        query: the rest of the address, such as `id`.
    """
    with st.container(key=f"way_{key}", gap=None):
        safe.html('<div class="w-way {look}">{content}</div>', look=look, content=content)
        st.page_link(page=target, label=safe.label(label), query_params=query or None, width="stretch")


def refused(reason: str) -> str:
    """Why an action cannot be used, as the help of its button: a label; empty where it can."""
    return safe.label(reason, 200)


def empty(title: str, text: str, button: str = "", target: str = "", *, key: str = "empty") -> None:
    """An empty state: what the page is for, and one button on."""
    with st.container(key="w_empty", horizontal_alignment="center"):
        safe.html(
            '<div class="w-empty"><div class="w-grain" aria-hidden="true"></div><h3>{title}</h3><p>{text}</p></div>',
            title=title,
            text=text,
        )
        if button and st.button(safe.label(button), key=f"{key}_go", type="primary"):
            go(target)


def back(label: str, target: str, **query: str) -> None:
    """A quiet way up from a page about one thing. A link and no button: the browser's own Back then works, too."""
    with st.container(key="w_back"):
        st.page_link(
            page=target, label=safe.label(label), icon=":material/arrow_back:", query_params=query or None
        )
