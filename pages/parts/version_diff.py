"""What differs between two versions, lesson by lesson, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.workspace import Difference, Workspace, differences
from pages.parts import frame, paging, queue, safe, words
from pages.parts.safe import joined, markup

PAGE = 20
SHOWN = {"all": "All", "new": "New", "changed": "Changed", "out": "Taken out"}
LOOKS = {"new": ("new", "good"), "changed": ("changed", "accent"), "out": ("taken out", "bad")}


def between(ws: Workspace, before: int, after: int) -> tuple[Difference, ...]:
    """Costs what changed, whatever the library holds.

    Raises:
        NotFoundError: there is no such version.
    """
    return differences(*ws.store.versions.changed(before, after))


def kind_of(d: Difference) -> str:
    return "new" if d.before is None else "out" if d.after is None else "changed"


def summary(found: Sequence[Difference]) -> str:
    kinds = [kind_of(d) for d in found]
    return (
        f"{words.plural(len(found), 'lesson')}: {kinds.count('new'):,} new, {kinds.count('changed'):,} changed, "
        f"{kinds.count('out'):,} taken out"
    )


def draw(found: Sequence[Difference], key: str) -> None:
    """The difference by what it does; each lesson's text exactly, changes word by word."""
    if not found:
        frame.note("Nothing differs: both read the same, whatever their lessons earned.")
        return
    kinds = [kind_of(d) for d in found]
    present = [k for k in SHOWN if k == "all" or k in kinds]
    queue.counted(f"{key}_show", [len(found), *(kinds.count(k) for k in present[1:])])
    shown = st.segmented_control(
        "Show",
        present,
        default="all",
        required=True,
        key=f"{key}_show",
        bind="query-params",
        format_func=SHOWN.__getitem__,
        label_visibility="collapsed",
    )
    listed = [d for d, k in zip(found, kinds, strict=True) if shown in (k, "all", None)]
    first = paging.offset(f"{key}_page", len(listed), PAGE)
    for d in listed[first : first + PAGE]:
        _one(d)


def _one(d: Difference) -> None:
    kind = kind_of(d)
    fields = joined(
        markup(' <span class="w-note">{name}: {was} becomes {now}</span>', name=name, was=was, now=now)
        for name, (was, now) in d.fields.items()
    )
    if d.before is not None and d.after is not None:
        text = safe.word_diff(d.before, d.after)
    else:
        text = markup(
            "<ins>{t}</ins>" if d.after is not None else "<del>{t}</del>", t=d.after or d.before or ""
        )
    frame.way(
        f"diff_{d.experience_id}",
        markup(
            '<div class="w-diff-head"><b>{id}</b>{chip}{fields}</div><div class="w-exact diff" dir="auto">{text}</div>',
            id=d.experience_id,
            chip=frame.chip(*LOOKS[kind]),
            fields=fields,
            text=text,
        ),
        f"Open lesson {d.experience_id}",
        "pages/review/experience.py",
        id=d.experience_id,
    )
    safe.warn_hidden(d.after or "")
