"""The outline of a rollout: a line a step, retries folded under theirs, a page of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.rollout import Ended
from core.workspace.reading import Line
from pages.parts import frame, safe
from pages.parts.safe import Markup, joined, markup
from pages.parts.trace import Trace, go

SIZE = 30
"""Lines that are drawn."""
RESULTS: dict[Ended, tuple[str, str, str]] = {
    "succeeded": ("✓", "worked", "good"),
    "failed": ("✗", "failed", "bad"),
    "not known": ("?", "not known whether it worked", ""),
    "no result": ("?", "no result was recorded", ""),
}
"""Mark, words and tone of how a step ended."""


def draw(trace: Trace) -> None:
    """The page of the outline that the present step is on."""
    lines = trace.reading.lines
    failed = len(trace.reading.failed)
    summary = f"{len(lines):,} · {failed:,} failed" if failed else f"{len(lines):,} · none failed"
    frame.section("Steps", summary)
    if not trace.lines:
        frame.note("No step fits the filter.")
        return
    present = lines[trace.place - 1]
    shown = unfolded(trace.lines, present)
    at = next((i for i, line in enumerate(shown) if line.number >= present.number), len(shown) - 1)
    first = at - at % SIZE
    hits = trace.hits("step")
    with st.container(key="trace_outline", gap=None):
        for line in shown[first : first + SIZE]:
            _row(line, line.number == trace.place, hits.get(line.number, 0))
    if len(shown) > SIZE:
        _pages(shown, first)


def unfolded(lines: Sequence[Line], present: Line) -> list[Line]:
    """Lines without the retries, but for those of the present step; a retry whose first try is not there stays."""
    numbers = {line.number for line in lines}
    own = present.retry_of or present.number
    return [
        line for line in lines if not line.retry_of or line.retry_of == own or line.retry_of not in numbers
    ]


def _row(line: Line, current: bool, hits: int) -> None:
    mark, how, tone = RESULTS[line.result]
    with st.container(key=f"card_step_{line.number}", gap=None):
        safe.html(
            '<div class="w-card w-line {current} {under}"><span class="n">{n}</span>'
            '<span class="how {tone}" title="{how}">{mark}</span>'
            '<span class="call" dir="auto"><b>{tool}</b> {gist}</span><span class="took">{took}</span>{notes}</div>',
            current="current" if current else "",
            under="under" if line.retry_of else "",
            n=line.number,
            tone=tone,
            how=how,
            mark=mark,
            tool=safe.short(line.tool, 60),
            gist=line.gist,
            took=took(line.duration_s),
            notes=_notes(line, hits),
        )
        st.button(
            safe.label(f"Step {line.number}, {line.tool}, {how}"),
            key=f"open_step_{line.number}",
            on_click=go,
            args=("step", line.number),
        )


def _notes(line: Line, hits: int) -> Markup:
    """What is to be said of a step beside how it ended."""
    said: list[tuple[str, str]] = []
    if line.retry_of:
        said.append(("↻ the same call again", ""))
    if line.repeated:
        said.append((f"↻ tried {line.repeated} more time{'' if line.repeated == 1 else 's'}", ""))
    if line.retries:
        said.append((f"↻ {line.retries} inside the tool", ""))
    if line.result == "failed":
        said.append(
            ("↪ recovered", "good")
            if line.recovered
            else ("■ gave up", "bad")
            if line.after == "gave up"
            else ("not recovered", "bad")
        )
    if line.recovers:
        said.append((f"↩ makes good {line.recovers}", "good"))
    if hits:
        said.append((f"{hits:,} found", "accent"))
    if not said:
        return Markup()
    return markup(
        '<span class="notes">{all}</span>',
        all=joined(markup('<i class="{tone}">{text}</i>', tone=tone, text=text) for text, tone in said),
    )


def took(seconds: float | None) -> str:
    """How long a step took; empty where nobody measured it."""
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def _pages(shown: Sequence[Line], first: int) -> None:
    """Ways to other pages: each looks at the first step of its page."""
    last = (len(shown) - 1) // SIZE * SIZE
    with st.container(horizontal=True, vertical_alignment="center", key="trace_pages", gap="small"):
        for label, key, icon, to in (
            ("First", "first", ":material/first_page:", 0),
            ("Earlier", "earlier", ":material/chevron_left:", first - SIZE),
            ("Later", "later", ":material/chevron_right:", first + SIZE),
            ("Last", "last", ":material/last_page:", last),
        ):
            st.button(
                safe.label(label),
                key=f"trace_{key}",
                icon=icon,
                type="tertiary",
                disabled=to == first or not 0 <= to <= last,
                on_click=go,
                args=("step", shown[min(max(to, 0), last)].number),
            )
        frame.note(f"{first + 1:,}–{min(first + SIZE, len(shown)):,} of {len(shown):,}")
