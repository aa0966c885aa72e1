"""The log in words."""

from __future__ import annotations

from collections.abc import Sequence

from core.rollout import Event
from pages.parts import safe
from pages.parts.safe import Markup, joined, markup

WORDS = {
    "tasks.imported": "imported tasks from",
    "run.created": "wrote down run",
    "run.done": "finished run",
    "run.failed": "gave up run",
    "run.reopened": "reopened failed groups of",
    "run.stopped_early": "found nothing left to learn in",
    "run.cancelled": "cancelled run",
    "run.discarded": "discarded what was made by run",
    "job.paused": "paused job",
    "job.resumed": "resumed job",
    "job.cancelled": "cancelled job",
    "job.requeued": "requeued job",
    "proposal.made": "proposed",
    "proposal.approved": "approved",
    "proposal.rejected": "rejected",
    "proposal.deferred": "deferred",
    "proposal.edited": "edited",
    "proposal.undone": "took back the decision on",
    "proposal.published": "published",
    "version.published": "published library version",
    "version.rolled_back": "rolled back to make version",
    "endpoint.saved": "saved endpoint",
    "endpoint.removed": "removed endpoint",
    "role.set": "changed the role",
    "pack.exported": "exported",
}


def when(at: str) -> str:
    """`2026-11-29T18:30:00Z` as `29 Nov 18:30`; other text as it is."""
    if at < "1971":
        return ""  # version 0 was always there
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    try:
        month, day = int(at[5:7]), int(at[8:10])
        return f"{day} {months[month - 1]} {at[11:16]}"
    except (ValueError, IndexError):
        return at


def line(event: Event) -> Markup:
    return markup(
        '<tr><td class="num" title="{at}">{when}</td><td>{actor} {verb} <b>{subject}</b></td></tr>',
        at=event.at,
        when=when(event.at),
        actor=event.actor,
        verb=WORDS.get(event.kind, event.kind),
        subject=safe.short(event.subject, 120),
    )


def lines(events: Sequence[Event]) -> None:
    if not events:
        safe.html('<p class="w-note">{text}</p>', text="Nothing has happened yet.")
        return
    safe.html('<table class="w-table">{rows}</table>', rows=joined(line(e) for e in events))
