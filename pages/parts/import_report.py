"""What would come of importing a task file: sums that add up, a preview, what is set aside and what repeats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import streamlit as st

from core.workspace import Workspace
from pages.parts import frame, safe, tables, tally, words
from pages.parts.run_form import plainly
from pages.parts.safe import joined, markup

if TYPE_CHECKING:
    from core.workspace.intake import Against, TaskFile

PREVIEW = 20
SHOWN = 500
"""Repeated rows that are shown."""


def new_tasks(found: TaskFile, against: Against) -> int:
    """How many tasks an import would add."""
    return len(found.tasks) - len(against.known) - len(against.taken) - len(against.answered)


def sums(found: TaskFile, against: Against) -> None:
    """Rows = new + those that give an answer + already here + repeated + set aside."""
    aside = len(found.rejected) + len(against.taken)
    tally.stacked(
        "row",
        found.rows,
        (
            ("new tasks", new_tasks(found, against), "w-grain-fill"),
            *([("answers", len(against.answered), "w-grain-fill")] if against.answered else []),
            ("already here", len(against.known), "w-chaff-fill"),
            ("repeated in the file", len(found.duplicate_ids), "w-chaff-fill"),
            ("set aside", aside, "w-bad-fill"),
        ),
    )
    notes = (*map(plainly, found.notes), *_notes(found, against))
    said = [f"{s[:1].upper()}{s[1:].rstrip('.')}." for s in notes]
    safe.html('<ul class="w-notes">{notes}</ul>', notes=joined(markup("<li>{s}</li>", s=s) for s in said))


def _notes(found: TaskFile, against: Against) -> Iterator[str]:
    if n := len(found.duplicate_texts):
        yield f"the same is asked by {words.plural(n, 'task')} as by an earlier one of the file: kept, in its split"
    if n := len(against.moved):
        yield f"another split is taken for {words.plural(n, 'task')}, because a task here asks the same"
    if n := len(against.answered):
        yield (
            f"an answer and what checks it for {words.plural(n, 'task')} that came in with recorded rollouts; rewards "
            "that are there stay as they are until a run is rescored"
        )
    if against.stay:
        stay = ", ".join(f"{n:,} {split}" for split, n in Counter(against.stay.values()).items())
        yield f"tasks that are here stay in the split that they have: {stay}"
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
    tables.splits(counts)


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
    here = against.known or against.taken or against.repeated or against.answered
    for task, line in lines if here else ():
        if task.id in against.known:
            yield {"Line": line, "Id": task.id, "What": "already here, unchanged: left out"}
        elif task.id in against.answered:
            yield {"Line": line, "Id": task.id, "What": "here without a verifier: it gets this answer"}
        elif task.id in against.taken:
            yield {"Line": line, "Id": task.id, "What": "this id stands for another task here: set aside"}
        elif task.id in against.repeated:
            said = f"the same text as {against.repeated[task.id]} here: kept, in its split"
            yield {"Line": line, "Id": task.id, "What": said}
