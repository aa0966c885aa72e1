"""Sums that are shown so that they can be checked: groups by what became of them, operations likewise."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.rollout import Batch, Extraction, Tally
from pages.parts import frame, safe, words
from pages.parts.safe import joined, markup

Part = tuple[str, int, str]
NOTES = 100
"""Notes of an extraction that are shown."""


def bar(tally: Tally) -> None:
    """Groups in = informative + uninformative + failed + waiting, as one bar with its numbers and the reasons."""
    stacked(
        "group",
        tally.total,
        (
            ("informative", tally.informative, "w-grain-fill"),
            ("uninformative", tally.uninformative, "w-chaff-fill"),
            ("failed", tally.failed, "w-bad-fill"),
            ("waiting", tally.waiting, "w-wait-fill"),
        ),
    )
    if tally.reasons:
        rows = joined(
            markup('<tr><td class="num">{n}</td><td>{reason}</td></tr>', n=n, reason=reason)
            for reason, n in tally.reasons.items()
        )
        safe.html(
            '<table class="w-table"><tr><th class="num">Groups</th><th>Why not informative</th></tr>{rows}</table>',
            rows=rows,
        )


def operations(extraction: Extraction) -> None:
    """Suggested = proposed + joined + superseded + set aside."""
    stacked(
        "suggestion",
        extraction.suggested,
        (
            ("proposed", extraction.proposed, "w-grain-fill"),
            ("said already", extraction.joined, "w-chaff-fill"),
            ("superseded", extraction.superseded, "w-chaff-fill"),
            ("set aside", extraction.quarantined, "w-bad-fill"),
        ),
    )
    if extraction.calls:
        frame.note(
            "Model calls: " + ", ".join(f"{stage} {n:,}" for stage, n in extraction.calls.items()) + "."
        )
    if extraction.notes:
        with st.expander(
            safe.label(f"What was noticed ({len(extraction.notes):,})"), icon=":material/notes:"
        ):
            notes = joined(markup("<li>{note}</li>", note=note) for note in extraction.notes[:NOTES])
            safe.html('<ul class="w-notes">{notes}</ul>', notes=notes)
            if len(extraction.notes) > NOTES:
                frame.note(f"The first {NOTES} of {len(extraction.notes):,}.")


BATCHES = 60
"""Rows of the table of batches."""


def batches(found: Sequence[Batch]) -> None:
    """What every batch was given, proposed and had published."""
    rows = joined(
        markup(
            '<tr><td class="num">{epoch}</td><td class="num">{batch}</td><td>{given}</td><td>{said}</td></tr>',
            epoch=each.epoch + 1,
            batch=each.batch + 1,
            given="not begun" if each.library_version is None else f"under version {each.library_version}",
            said=_said(each),
        )
        for each in found[:BATCHES]
    )
    safe.html(
        '<div class="w-scroll"><table class="w-table"><tr><th class="num">Epoch</th><th class="num">Batch</th>'
        "<th>Sampled</th><th>Lessons</th></tr>{rows}</table></div>",
        rows=rows,
    )
    if len(found) > BATCHES:
        frame.note(f"The first {BATCHES} of {len(found)} batches.")


def _said(batch: Batch) -> str:
    if batch.extraction is None:
        return ""
    published = f", published as version {batch.published_in}" if batch.published_in is not None else ""
    return f"{batch.extraction.proposed} proposed{published}"


def pieces(total: int, parts: Sequence[Part]) -> safe.Markup:
    """The parts of a sum as pieces of one bar."""
    return joined(
        markup('<i class="{look}" style="width:{share}%"></i>', look=look, share=f"{100 * n / total:.3f}")
        for _, n, look in parts
        if n
    )


def stacked(noun: str, total: int, parts: Sequence[Part]) -> None:
    """A sum as one bar, with the numbers of its parts; it says so where they do not add up.

    Args:
        noun: one of what is counted.
        total: what the parts add up to.
        parts: name, number and look of each.
    """
    if not total:
        frame.note(f"No {noun}s yet.")
        return
    keys = joined(
        markup('<span><i class="w-key {look}"></i><b>{n}</b> {what}</span>', look=look, n=f"{n:,}", what=what)
        for what, n, look in parts
        if n
    )
    ok = sum(n for _, n, _ in parts) == total
    safe.html(
        '<div class="w-bar">{pieces}</div><div class="w-legend">{keys}<span>{sum}</span></div>',
        pieces=pieces(total, parts),
        keys=keys,
        sum=f"= {words.plural(total, noun)}" if ok else f"of {words.plural(total, noun)}: the sum is wrong",
    )
