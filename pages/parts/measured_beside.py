"""What was measured of a proposal or a lesson, beside it, and the way to measure it now."""

from __future__ import annotations

from collections.abc import Sequence

from core.experience import Experience, Proposal
from core.workspace import Workspace
from core.workspace.gate_story import why_not_tried
from pages.parts import frame, measured, measured_form

OPEN = ("proposed", "deferred", "approved", "superseded")
"""What can still be tried."""
TOGETHER = 20
"""Proposals that are tried together at most: each is an arm of its own."""


def proposal(ws: Workspace, item: Proposal) -> None:
    """Its measured effect with the interval, before its counted evidence: what was counted may still not help."""
    found = measured.of(ws, item.id)
    can = item.status in OPEN
    if not found and not can:
        return
    frame.section("Measured effect", "with it against without it, on trial tasks")
    measured.shown(found, item.id)
    busy = measured.under_way(ws, item.id)
    if not found and not busy:
        held = why_not_tried(ws.store, item.run_id, item.id) if item.run_id else ""
        frame.note(f"Not measured yet. {held}".strip())
    if can and measured_form.opener("Measure on trial tasks", item.id, "proposal"):
        measured_form.panel(
            ws, lambda base: ws.measuring.of_proposals([item.id], base), item.run_id, "trial", "proposal"
        )


def lesson(ws: Workspace, one: Experience) -> None:
    """What its version loses without it."""
    found = measured.of(ws, one.id)
    live = one.status == "live"
    if not found and not live:
        return
    frame.section("Measured effect", "its version with it against without it, on trial tasks")
    measured.shown(found, one.id)
    busy = measured.under_way(ws, one.id)
    if not found and not busy:
        frame.note("Not measured yet.")
    if live and measured_form.opener("Measure it: leave it out", one.id, "lesson"):
        came = ws.store.proposals.get(one.proposal_id).run_id if one.proposal_id else None
        measured_form.panel(
            ws, lambda base: ws.measuring.of_lessons([one.id], base), came, "lesson", "lesson"
        )


def together(ws: Workspace, ids: Sequence[str]) -> None:
    """Try the first proposals of the queue together: tried together, they are corrected together."""
    tried = list(ids[:TOGETHER])
    if not tried:
        return
    if measured_form.opener(
        f"Measure {'these' if len(tried) > 1 else 'it'} on trial tasks", "queue", "queue"
    ):
        if len(ids) > TOGETHER:
            frame.note(f"The first {TOGETHER} of {len(ids):,}; the others after these.")
        measured_form.panel(ws, lambda base: ws.measuring.of_proposals(tried, base), None, "trial", "queue")


def order_note(order: str) -> None:
    """What an order by measurement means."""
    if order == "effect":
        frame.note("The largest measured effect first; what was not measured comes last.")
    elif order == "uncertainty":
        frame.note("What was not measured first, then the widest interval.")


def chips(ws: Workspace, ids: Sequence[str]) -> dict[str, measured.Markup]:
    """The newest measured effect of each, as a chip with its sign and its number of tasks."""
    found = ws.store.evaluations.newest_measured(ids)
    return {name: measured.chip(one.effect, number=True) for name, one in found.items()}
