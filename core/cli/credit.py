"""`winnow library credit`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, plural, table, verb


@verb(None, "credit")
@click.argument("run_id", metavar="RUN")
def credit(desk: Desk, run_id: str) -> None:
    """Credit the lessons that a RUN was given: who followed them, and whether followers did better than siblings.

    A run does so when it ends; again (after a rescore, say) what is pending is made anew. It moves confidence, uses
    and wins with the next version.
    """
    earned = desk.workspace.crediting.credit_run(run_id)
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
    headers = ("id", "followed in", "better", "worse", "in-sample", "confidence", "text")
    lines = table(rows, headers) if rows else [f"No lesson was followed in {run_id}."]
    if rows:
        lines.append(
            f"{plural(len(rows), 'lesson')} credited; confidence moves with the next version (winnow publish)."
        )
    desk.answer({"run": run_id, "earned": earned}, *lines)
