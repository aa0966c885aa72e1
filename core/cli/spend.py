"""`winnow spend`."""

from __future__ import annotations

from datetime import date

import click

from core.cli.desk import Desk, table, verb
from core.errors import InputError
from core.rollout import Usage

BY = ("run", "endpoint", "day", "stage")


@verb(None, "spend")
@click.option("--by", type=click.Choice(BY), default="run", show_default=True, help="A line for each.")
@click.option("--run", "run_id", metavar="RUN", help="Only what was sent for this run.")
@click.option(
    "--since", metavar="DAY", help="Only what was sent on this day (UTC) or later, such as 2026-11-29."
)
def spend(desk: Desk, by: str, run_id: str | None, since: str | None) -> None:
    """What was really sent, and what it cost: retries and failed requests included, cached replies not.

    A call is one request that left this machine. Costs are in US dollars, at the prices of the endpoints.
    """
    store = desk.workspace.store
    if run_id is not None:
        store.runs.get(run_id)
    if since is not None:
        try:
            since = date.fromisoformat(since).isoformat()
        except ValueError as e:
            raise InputError(f"--since {since!r} is no day; write it as 2026-11-29.") from e
    rows = store.spending.by(by, run_id=run_id, since=since or "")  # type: ignore[arg-type]  # click checked it
    total = sum((row.usage for row in rows), Usage())
    lines = [(row.label or "(no run)", *_cells(row.usage, row.free)) for row in rows]
    if len(rows) > 1:
        lines.append(("together", *_cells(total, all(row.free for row in rows))))
    headers = (by, "calls", "prompt tokens", "completion tokens", "cost")
    told = table(lines, headers) if rows else ["Nothing was sent."]
    desk.answer({"by": by, "rows": rows, "total": total}, *told)


def _cells(usage: Usage, free: bool) -> tuple[str, ...]:
    counts = (usage.calls, usage.prompt_tokens, usage.completion_tokens)
    return (*(f"{n:,}" for n in counts), usage.dollars(free=free))
