"""`winnow library credit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from core.cli.desk import Desk, plural, table, verb

if TYPE_CHECKING:
    from core.workspace.crediting import Earned


@verb(None, "credit")
@click.argument("run_id", metavar="RUN")
def credit(desk: Desk, run_id: str) -> None:
    """Credit the lessons that a RUN was given: who followed them, and whether followers did better than siblings.

    A run does so when it ends; again (after a rescore, say) what is pending is made anew. It moves confidence, uses
    and wins with the next version.
    """
    earned = desk.workspace.crediting.credit_run(run_id)
    lines = earned_lines(earned) or [f"No lesson was followed in {run_id}."]
    desk.answer({"run": run_id, "earned": earned}, *lines)


def earned_lines(earned: Sequence[Earned]) -> list[str]:
    """What waits for the next version, a lesson a line; nothing where nothing does."""
    rows = [
        (
            e.experience_id,
            e.groups,
            e.better,
            e.worse,
            e.in_sample,
            f"{e.confidence:.2f} -> {e.pending:.2f}",
            e.text,
        )
        for e in earned
    ]
    if not rows:
        return []
    headers = ("id", "followed in", "better", "worse", "in-sample", "confidence", "text")
    told = f"{plural(len(rows), 'lesson')} credited; confidence moves with the next version (winnow publish)."
    return [*table(rows, headers), told]
