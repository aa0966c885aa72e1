"""The messages of a rollout as they were sent and received: the last three open, the history before them folded."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.workspace.reading import Said
from pages.parts import frame, gated, safe, words
from pages.parts.safe import markup
from pages.parts.step_view import file_of
from pages.parts.trace import MESSAGES, Trace, go

OPEN = 3
"""Messages at the end that are open."""
SIZE = 30
UNFOLDED = 1_000
"""Characters at the beginning and the end of each, where all of a page are unfolded."""
TONES = {"system": "quiet", "user": "", "assistant": "accent", "tool": "good"}


def draw(trace: Trace) -> None:
    """The page of messages that the present one is on; without one, the last page."""
    total, present = trace.reading.messages, trace.place
    at = present or total
    first = at - 1 - (at - 1) % SIZE
    with st.container(horizontal=True, vertical_alignment="bottom"):
        frame.section("Messages", f"{words.plural(total, 'message')}, as they were sent and received")
        unfold = st.toggle("Unfold all", key=MESSAGES, bind="query-params") if total > OPEN else False
    hits = trace.hits("message")
    for said in trace.reading.said(first + 1, first + SIZE):
        is_open = said.number == present or said.number > total - OPEN
        if is_open or unfold:
            _whole(trace, said, is_open, said.number == present)
        else:
            _folded(said, hits.get(said.number, 0))
    if total > SIZE:
        _pages(total, first)


def _whole(trace: Trace, said: Said, is_open: bool, current: bool) -> None:
    key = f"{trace.rollout.id}_m{said.number}"
    size = gated.head(key) if is_open else UNFOLDED
    safe.html(
        '<div class="w-role {role} {current}">{chip}<span class="w-note">{n} of {all}{name}</span>'
        '<span class="end">{size} characters</span></div>',
        role=said.role,
        current="current" if current else "",
        chip=frame.chip(said.role, TONES.get(said.role, "")),
        n=said.number,
        all=trace.reading.messages,
        name=f" · {said.name}" if said.name else "",
        size=f"{said.characters:,}",
    )
    text = trace.reading.message(said.number, head=size, **({} if is_open else {"tail": UNFOLDED}))
    gated.show(
        text,
        key,
        whole=partial(file_of, trace.ws, trace.rollout.id, "message", said.number),
        name=f"{trace.rollout.id}-message-{said.number}.txt",
        find=trace.find,
        look=f"w-said-by {said.role}",
    )


def _folded(said: Said, hits: int) -> None:
    with st.container(key=f"card_message_{said.number}", gap=None):
        safe.html(
            '<div class="w-card w-line w-fold {role}"><span class="n">{n}</span><span class="who">{role}</span>'
            '<span class="call" dir="auto">{gist}</span><span class="took">{size}</span>{hits}</div>',
            role=said.role,
            n=said.number,
            gist=said.gist or "(empty)",
            size=f"{said.characters:,} characters",
            hits=markup('<span class="notes"><i class="accent">{n} found</i></span>', n=hits)
            if hits
            else markup(""),
        )
        st.button(
            f"Message {said.number:d}",
            key=f"open_message_{said.number}",
            on_click=go,
            args=("message", said.number),
        )


def _pages(total: int, first: int) -> None:
    last = (total - 1) // SIZE * SIZE
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, key, to in (("Earlier", "earlier", first - SIZE), ("Later", "later", first + SIZE)):
            st.button(
                safe.label(label),
                key=f"trace_messages_{key}",
                type="tertiary",
                disabled=not 0 <= to <= last,
                on_click=go,
                args=("message", max(to, 0) + 1),
            )
        frame.note(f"{first + 1:,}–{min(first + SIZE, total):,} of {total:,}")
