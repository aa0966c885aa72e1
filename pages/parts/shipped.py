"""What was exported and imported so far, the newest first."""

from __future__ import annotations

import streamlit as st

from core.rollout import Event
from core.workspace import Workspace
from pages.parts import frame, paging, safe, words
from pages.parts.events import when
from pages.parts.safe import Markup, joined, markup

SIZE = 15
KINDS = {"pack.exported": "Exported", "pack.imported": "Imported", "usage.imported": "Usage logs"}


def draw(ws: Workspace) -> None:
    kind = st.segmented_control(
        "Show",
        list(KINDS),
        default="pack.exported",
        required=True,
        key="packs_kind",
        bind="query-params",
        format_func=KINDS.__getitem__,
        label_visibility="collapsed",
    )
    chosen = kind or "pack.exported"
    _, total = ws.store.events.page(kind=chosen, limit=0)
    if not total:
        frame.note("Nothing yet.")
        return
    first = paging.offset("packs_page", total, SIZE)
    events, _ = ws.store.events.page(kind=chosen, limit=SIZE, offset=first)
    rows = joined(_row(event) for event in events)
    safe.html(
        '<div class="w-scroll"><table class="w-table"><tr><th>When</th><th>Who</th><th>What</th><th></th>'
        "<th>SHA-256</th></tr>{rows}</table></div>",
        rows=rows,
    )


def _row(event: Event) -> Markup:
    data = event.data
    told = {
        "pack.exported": (event.subject, f"as {data.get('target', '')}"),
        "pack.imported": (
            event.subject,
            f"{data.get('form', '')}: {data.get('proposed', 0)} proposed, {data.get('joined', 0)} known",
        ),
        "usage.imported": (
            event.subject,
            f"{words.plural(int(str(data.get('entries', 0))), 'new line')}, {data.get('credited', 0)} of our lessons",
        ),
    }[event.kind]
    return markup(
        '<tr><td class="w-whole">{when}</td><td>{who}</td><td>{what}</td><td>{more}</td>'
        '<td class="w-hash" title="{sum}">{short}</td></tr>',
        when=when(event.at),
        who=event.actor,
        what=told[0],
        more=told[1],
        sum=data.get("sha256", ""),
        short=str(data.get("sha256", ""))[:16],
    )
