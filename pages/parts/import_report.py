"""What would come of importing a task file: sums that add up, a preview, what is set aside and what repeats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import streamlit as st

from core.rollout import SPLITS
from core.workspace import Workspace
from pages.parts import frame, safe, tables, words
from pages.parts.run_form import plainly
from pages.parts.safe import joined, markup

if TYPE_CHECKING:
    from core.workspace.intake import Against, TaskFile

PREVIEW = 20
SHOWN = 500
"""Repeated rows that are shown."""
DOMAINS = 100


def new_tasks(found: TaskFile, against: Against) -> int:
    """How many tasks an import would add."""
    return len(found.tasks) - len(against.known) - len(against.taken)


def sums(found: TaskFile, against: Against) -> None:
    """Rows = new + already here + repeated + set aside."""
    aside = len(found.rejected) + len(against.taken)
    parts = (
        (new_tasks(found, against), "new tasks", "w-grain-fill"),
        (len(against.known), "already here", "w-chaff-fill"),
        (len(found.duplicate_ids), "repeated in the file", "w-chaff-fill"),
        (aside, "set aside", "w-bad-fill"),
    )
    pieces = joined(
        markup(
            '<i class="{look}" style="width:{share}%"></i>', look=look, share=f"{100 * n / found.rows:.3f}"
        )
        for n, _, look in parts
        if n
    )
    keys = joined(
        markup('<span><i class="w-key {look}"></i><b>{n}</b> {what}</span>', look=look, n=f"{n:,}", what=what)
        for n, what, look in parts
        if n
    )
    safe.html(
        '<div class="w-bar">{pieces}</div><div class="w-legend">{keys}<span>= {rows}</span></div>',
        pieces=pieces,
        keys=keys,
        rows=words.plural(found.rows, "row"),
    )
    notes = (*map(plainly, found.notes), *_notes(found, against))
    said = [f"{s[:1].upper()}{s[1:].rstrip('.')}." for s in notes]
    safe.html('<ul class="w-notes">{notes}</ul>', notes=joined(markup("<li>{s}</li>", s=s) for s in said))


def _notes(found: TaskFile, against: Against) -> Iterator[str]:
    if n := len(found.duplicate_texts):
        yield f"the same is asked by {words.plural(n, 'task')} as by an earlier one of the file: kept, in its split"
    if n := len(against.moved):
        yield f"another split is taken for {words.plural(n, 'task')}, because a task here asks the same"
    if n := len(against.taken):
        yield f"set aside: {words.plural(n, 'row')} with an id that stands for another task here"


def details(ws: Workspace, found: TaskFile, against: Against, data: bytes, name: str, ending: str) -> None:
    """Preview, splits, what is set aside, what repeats."""
    aside = len(found.rejected)
    repeats = list(_repeats(found, against))
    tasks, splits, rejected, repeated = st.tabs(
        [
            "Preview",
            "Splits",
            safe.label(f"Set aside · {aside:,}"),
            safe.label(f"Repeated · {len(repeats):,}"),
        ]
    )
    with tasks:
        _preview(found)
    with splits:
        _splits(found, against)
    with rejected:
        _rejected(ws, found, data, name, ending)
    with repeated:
        if repeats:
            st.dataframe(repeats[:SHOWN], hide_index=True, key="import_repeated", lazy=False)
        else:
            frame.note("No row repeats another one, in the file or here.")


def _preview(found: TaskFile) -> None:
    if not found.tasks:
        frame.note("No row can become a task as the columns are read now.")
        return
    frame.note(f"The first {min(PREVIEW, len(found.tasks))} of {words.plural(len(found.tasks), 'task')}.")
    rows = [
        {
            "Line": line,
            "Question": safe.short(t.question, 300),
            "Answer": safe.short(t.answer or "", 120),
            "Verifier": t.verifier.kind,
            "Domain": t.domain,
            "Split": t.split,
            "Id": t.id,
        }
        for t, line in zip(found.tasks[:PREVIEW], found.lines, strict=False)
    ]
    st.dataframe(rows, hide_index=True, key="import_preview", lazy=False)


def _splits(found: TaskFile, against: Against) -> None:
    """Where the tasks go, by domain."""
    counts: dict[str, Counter[str]] = {}
    for task in found.tasks:
        counts.setdefault(task.domain, Counter())[against.moved.get(task.id, task.split)] += 1
    rows = joined(
        markup(
            '<tr><td>{domain}</td><td class="num">{train}</td><td class="num">{trial}</td>'
            '<td class="num">{final}</td></tr>',
            domain=domain,
            **{split: f"{by[split]:,}" for split in SPLITS},
        )
        for domain, by in list(counts.items())[:DOMAINS]
    )
    safe.html(
        '<table class="w-table"><tr><th>Domain</th><th class="num">Train</th><th class="num">Trial</th>'
        '<th class="num">Final</th></tr>{rows}</table>',
        rows=rows,
    )
    if len(counts) > DOMAINS:
        frame.note(f"The first {DOMAINS} of {len(counts):,} domains.")


def _rejected(ws: Workspace, found: TaskFile, data: bytes, name: str, ending: str) -> None:
    if not found.rejected:
        frame.note("Every row can come in.")
        return
    frame.note(
        "Each with its line and the reason. Download them as they came, mend them, and import them again."
    )
    stem = re.sub(r"[^\w-]+", "-", name.rsplit(".", 1)[0]).strip("-")[:60] or "rows"
    with st.container(horizontal=True):
        st.download_button(
            safe.label(f"Rejected rows as {ending.upper()}"),
            lambda: ws.intake.mend(data, found, name=name)[0],
            f"{stem}-rejected.{ending}",
            "application/octet-stream",
            key="import_mend",
            icon=":material/download:",
            on_click="ignore",
        )
        st.download_button(
            "Report as CSV",
            lambda: tables.csv_of(found.rejected),
            f"{stem}-report.csv",
            "text/csv",
            key="import_rejected_csv",
            type="tertiary",
            icon=":material/download:",
            on_click="ignore",
        )
    tables.rejected(found.rejected, key="import_rejected")
    if len(found.rejected) > tables.SHOWN:
        frame.note(f"The first {tables.SHOWN} of {len(found.rejected):,}; the downloads have them all.")


def _repeats(found: TaskFile, against: Against) -> Iterator[dict[str, object]]:
    for each in found.duplicate_ids:
        yield {"Line": each.line, "Id": each.id, "What": f"the same row as line {each.first_line}: left out"}
    for each in found.duplicate_texts:
        said = f"the same text as line {each.first_line} ({each.first_id}): kept, in its split"
        yield {"Line": each.line, "Id": each.id, "What": said}
    lines = zip(found.tasks, found.lines, strict=True)
    for task, line in lines if against.known or against.taken or against.repeated else ():
        if task.id in against.known:
            yield {"Line": line, "Id": task.id, "What": "already here, unchanged: left out"}
        elif task.id in against.taken:
            yield {"Line": line, "Id": task.id, "What": "this id stands for another task here: set aside"}
        elif task.id in against.repeated:
            said = f"the same text as {against.repeated[task.id]} here: kept, in its split"
            yield {"Line": line, "Id": task.id, "What": said}
