"""`winnow usage`."""

from __future__ import annotations

from pathlib import Path

import click

from core.cli.credit import earned_lines
from core.cli.desk import Desk, foreign_file, one_line, plural, verb
from core.packs.usage_log import MAX_LOG_BYTES


@click.group()
def usage() -> None:
    """How shipped lessons did: the logs that the exported Python loader writes."""


@verb(usage, "import")
@click.argument("log", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would come in.")
def import_usage(desk: Desk, log: Path, dry_run: bool) -> None:
    """Read a usage LOG (JSON lines) and credit the lessons that it speaks of.

    Each entry counts once, however often the log is read. Only lessons that this workspace published with the very
    text that was injected are credited; other ids are counted and shown. A log may come in portions: attempts at one
    task are weighed together. What was earned waits for the next version: it is shown here, and in winnow library list
    and show.
    """
    data = foreign_file(log, MAX_LOG_BYTES)
    done = desk.workspace.shipping.arriving.usage(data, log.name, desk.who, dry_run=dry_run)
    lines = [
        f"{plural(done.new, 'new entry', 'new entries')} in {done.source}, {done.known:,} known already."
    ]
    if done.known and not done.new:
        lines.append("What they tell was counted when they first came in; no entry counts twice.")
    else:
        new = "new " if done.known else ""
        lines.append(
            f"{plural(done.credited, f'{new}entry tells', f'{new}entries tell')} of lessons of this workspace."
        )
    lines += earned_lines(done.earned)
    if done.unknown:
        shown = ", ".join(f"{one_line(i, 40)} ({n:,} times)" for i, n in list(done.unknown.items())[:20])
        lines.append(f"Not credited, since no lesson of that id and text was published here: {shown}.")
    if done.aside:
        lines.append(f"{plural(len(done.aside), 'line')} set aside:")
        lines += [f"  {each.place}: {one_line(each.reason, 200)}" for each in done.aside[:20]]
    if dry_run:
        lines.append("Nothing was written.")
    desk.answer(done, *lines, set_aside=bool(done.aside))
