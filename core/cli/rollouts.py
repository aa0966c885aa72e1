"""`winnow rollouts`."""

from __future__ import annotations

from pathlib import Path

import click

from core.cli.desk import Desk, one_line, plural, verb
from core.cli.runs import told
from core.cli.texts import with_text
from core.errors import InputError
from core.experience import GENERAL, KINDS, Add, Kind


@click.group()
def rollouts() -> None:
    """Rollouts that were recorded elsewhere; accept, reject or correct outcomes."""


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
        lines += [f"  line {r.line} set aside: {one_line(r.reason, 200)}" for r in result.set_aside[:20]]
        lines += list(result.notes)
    desk.answer(done, *lines, set_aside=any(r.set_aside for r in done))


@verb(rollouts, "propose")
@click.argument("run_id")
def propose(desk: Desk, run_id: str) -> None:
    """Draw lessons from the recorded rollouts of a run (no model is asked)."""
    run = desk.workspace.learning.propose(run_id, desk.who, desk.progress)
    made = run.extraction
    desk.answer(
        told(run),
        f"{plural(made.proposed, 'proposal')} from {run.id}: see `winnow review list`.",
        *made.notes,
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


@verb(rollouts, "correct")
@click.argument("rollout_id")
@with_text("What should have been done, as a lesson.")
@click.option("--step", type=click.IntRange(1), default=None, help="The step that it is about, from 1.")
@click.option("--kind", type=click.Choice(KINDS), default="strategy", show_default=True)
@click.option("--domain", default=None, help="Default: that of the task.")
@click.option("--note", default="", help="Anything else; the reviewer sees it.")
def correct(
    desk: Desk, rollout_id: str, text: str | None, step: int | None, kind: Kind, domain: str | None, note: str
) -> None:
    """Say what should have been done in a rollout; it waits for a review, with confidence 0.8.

    winnow rollouts correct R1-0001-0 --step 3 --text "Call list_files before read_json."
    """
    workspace = desk.workspace
    if text is None:
        raise InputError("Give the lesson with --text or --text-file FILE.")
    task = workspace.store.tasks.find(workspace.store.trajectories.head(rollout_id).task_id)
    lesson = Add.read(
        {"text": text, "kind": kind, "domain": domain or (task.domain if task else GENERAL)},
        where="The lesson",
    )
    written = workspace.correcting.correct(rollout_id, lesson, desk.who, step=step, note=note)
    made = written.proposal.id
    lines = [f"{made} waits for a review: {one_line(written.proposal.rationale.splitlines()[-1], 200)}"]
    lines += [note for note in (written.near_note, written.rejected) if note]
    desk.answer(written, *lines, f"To take it back: winnow review reject {made} -r mistaken")
