"""One task: what is asked, what checks it, and how its groups went."""

from __future__ import annotations

import json

import streamlit as st

from core.rollout import GroupRow, Task
from core.workspace import Workspace
from pages.parts import frame, safe, words
from pages.parts.events import when
from pages.parts.once import once
from pages.parts.safe import joined, markup

COUNTED = "w_task_counts"
GROUPS = 10
"""Newest groups of a task that are shown."""


def counted(ws: Workspace) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Tasks by domain and split, and by the kind of their verifier; they change only when some are added."""
    tasks = ws.store.tasks
    return once(COUNTED, "counts", (str(ws.folder), tasks.stamp()), lambda: (tasks.counts(), tasks.kinds()))


def task(ws: Workspace, of: Task) -> None:
    """Draw one task."""
    source, at = ws.store.tasks.origin(of.id)
    safe.html(
        '<div class="w-section"><h2 class="w-id">{id}</h2></div><div class="w-chips">{chips}</div>',
        id=of.id,
        chips=joined(frame.chip(text) for text in (of.domain, of.split, of.verifier.kind)),
    )
    safe.exact(of.question, key="task_question", name="question.txt", look="prose")
    frame.facts([("Answer", safe.short(of.answer, 600) if of.answer else "none: its verifier needs none")])
    groups(ws, of)
    with st.expander("Verifier and origin", icon=":material/rule:"):
        safe.exact(
            json.dumps(of.verifier.model_dump(mode="json"), indent=1, ensure_ascii=False), key="task_verifier"
        )
        if of.metadata:
            frame.note("What else the file said of it:")
            safe.exact(
                json.dumps(of.metadata, indent=1, ensure_ascii=False),
                key="task_metadata",
                name="metadata.json",
            )
        frame.note(f"From {source}, {when(at)}.")


def groups(ws: Workspace, of: Task) -> None:
    """How the newest groups of a task went, each a link."""
    found, total = ws.store.tasks.groups(of.id, limit=GROUPS)
    if not total:
        frame.note("No run has tried it yet.")
        return
    frame.section("Its groups", f"the newest {GROUPS} of {total:,}" if total > GROUPS else "")
    for row in found:
        frame.way(f"task_{row.id}", _line(row), f"Open group {row.id}", "pages/learn/group.py", id=row.id)


def _line(row: GroupRow) -> safe.Markup:
    share = 100 * min(max(row.mean or 0.0, 0.0), 1.0)
    return markup(
        '<div class="w-line"><span class="id">{id}</span>{chip}<span class="track"><i class="w-grain-fill"'
        ' style="width:{share}%"></i></span><span class="num">mean {mean} · spread {spread}</span></div>',
        id=row.id,
        chip=words.group_chip(row),
        share=f"{share:.1f}",
        mean=words.number(row.mean),
        spread=words.number(row.spread),
    )
