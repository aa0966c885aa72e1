"""`winnow rollouts`."""

from __future__ import annotations

from pathlib import Path

import click

from core.cli.desk import Desk, one_line, plural, verb
from core.errors import InputError


@click.group()
def rollouts() -> None:
    """Rollouts that were recorded elsewhere; accept or reject outcomes."""


@verb(rollouts, "import")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--format", "form", help="Say which format it is, instead of looking.")
def import_rollouts(desk: Desk, files: tuple[Path, ...], form: str | None) -> None:
    """Import recorded rollouts from FILES in Winnow's own JSONL form (see docs/formats.md).

    Each file becomes a run; rollouts of one task and one model become a group. The same file again changes nothing.
    """
    if missing := [f for f in files if not f.is_file()]:
        raise InputError(f"There is no file {missing[0]}.")
    done = [desk.workspace.intake.add_rollouts(f, desk.who, name=f.name, form=form) for f in files]
    lines = []
    for result in done:
        if result.known:
            lines.append(f"{result.source} was imported before, as {result.run_id}; nothing was changed.")
            continue
        lines.append(
            f"{plural(result.rollouts, 'rollout')} of {plural(result.groups, 'group')} imported from {result.source} "
            f"as {result.run_id}: {result.informative} informative, {result.unscored} unscored, "
            f"{result.errors} broken off."
        )
        lines += [f"  line {r.line} kept aside: {one_line(r.reason, 200)}" for r in result.set_aside[:20]]
        lines += list(result.notes)
    desk.answer(done, *lines, set_aside=any(r.set_aside for r in done))


@verb(rollouts, "propose")
@click.argument("run_id")
def propose(desk: Desk, run_id: str) -> None:
    """Draw lessons from the recorded rollouts of a run (no model is asked)."""
    run = desk.workspace.learning.propose(run_id, desk.who, desk.progress)
    made = run.extraction
    desk.answer(
        run, f"{plural(made.proposed, 'proposal')} from {run.id}: see `winnow review list`.", *made.notes
    )


def _decided(desk: Desk, rollout_ids: tuple[str, ...], accepted: bool | None, done: str) -> None:
    found = desk.workspace.rescoring.accept(rollout_ids, accepted, desk.who)
    lines = [f"{plural(len(found.rollout_ids), 'rollout')} {done}."]
    if found.settled:
        changed = (
            f"; {plural(len(found.status_changed), 'group')} changed status" if found.status_changed else ""
        )
        lines.append(f"Rewards of {plural(len(found.settled), 'group')} were made anew{changed}.")
    desk.answer(found, *lines)


@verb(rollouts, "accept")
@click.argument("rollout_ids", nargs=-1, required=True)
def accept(desk: Desk, rollout_ids: tuple[str, ...]) -> None:
    """Say that the outcomes of ROLLOUT_IDS are accepted (counts where the reward of their run weighs it)."""
    _decided(desk, rollout_ids, True, "accepted")


@verb(rollouts, "reject")
@click.argument("rollout_ids", nargs=-1, required=True)
def reject(desk: Desk, rollout_ids: tuple[str, ...]) -> None:
    """Say that the outcomes of ROLLOUT_IDS are not accepted."""
    _decided(desk, rollout_ids, False, "rejected")


@verb(rollouts, "clear")
@click.argument("rollout_ids", nargs=-1, required=True)
def clear(desk: Desk, rollout_ids: tuple[str, ...]) -> None:
    """Take back what was said of the outcomes of ROLLOUT_IDS."""
    _decided(desk, rollout_ids, None, "cleared")
