"""`winnow log` and `winnow dump`."""

from __future__ import annotations

import json

import click

from core.cli.desk import Desk, one_line, table, verb


@verb(None, "log")
@click.option("--limit", type=click.IntRange(1, 100_000), default=30, show_default=True)
@click.option(
    "--subject",
    help="Only of this proposal, run, version, ...; of an experience, with its proposals and versions.",
)
def log(desk: Desk, limit: int, subject: str | None) -> None:
    """Show who did what and when, the newest first."""
    events = desk.workspace.store.events.newest(limit, subject=subject)
    rows = [
        (e.at, e.actor, e.kind, e.subject, one_line(json.dumps(e.data, ensure_ascii=False))) for e in events
    ]
    desk.answer(events, *table(rows, ("at", "who", "what", "subject", "details")))


@verb(None, "dump")
def dump(desk: Desk) -> None:
    """Print the whole workspace in a canonical form without times: equal histories print equal dumps."""
    text = desk.workspace.store.dump()
    desk.answer(text.splitlines(), text.rstrip("\n"))
