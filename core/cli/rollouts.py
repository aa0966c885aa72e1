"""`winnow rollouts`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from core.cli.desk import Desk, one_line, plain, plural, table, verb
from core.cli.drawing_told import drawn_lines, takes
from core.cli.rollouts_told import told_of
from core.cli.runs import told
from core.cli.tasks import verifier_named
from core.cli.texts import with_text
from core.errors import InputError
from core.experience import GENERAL, KINDS, Add, Kind
from core.importers.report import GroupBy, ImportOptions
from core.rollout import SPLITS


@click.group()
def rollouts() -> None:
    """Rollouts that were recorded elsewhere; accept, reject or correct outcomes."""


@verb(rollouts, "import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format", "form", help="Say which format it is, instead of looking: see `winnow rollouts formats`."
)
@click.option(
    "--mapping",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file that says which columns of a generic file hold what.",
)
@click.option(
    "--rewards",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of rewards: task_id[, repeat | attempt_id], reward; or a SWE-bench report.",
)
@click.option("--score", help="Name of the score that is the reward.")
@click.option("--lower-is-better", is_flag=True, help="The reward is minus the score.")
@click.option(
    "--group-by",
    type=click.Choice(["task", "question"]),
    default=None,
    help="Attempts at one task: of one task id whatever the question, or of one question whatever the id.",
)
@click.option("--task-field", metavar="FIELD", help="Take a field of the metadata as the task id.")
@click.option("--mix-models", is_flag=True, help="Attempts of different models and agents may share a group.")
@click.option("--domain", help="Domain of new tasks; else what their ids count within.")
@click.option(
    "--split", type=click.Choice(SPLITS), default="train", show_default=True, help="Split of new tasks."
)
@click.option("--verifier", help="What checks new tasks, and grades attempts without a reward, e.g. numeric.")
@click.option("--keep-secrets", is_flag=True, help="Do not mask keys, tokens and e-mail addresses.")
@click.option(
    "--keep-raw", is_flag=True, help="Copy the files, and what was read beside them, into the workspace."
)
@click.option("--dry-run", is_flag=True, help="Only say what would come in.")
def import_rollouts(
    desk: Desk,
    paths: tuple[str, ...],
    form: str | None,
    mapping: Path | None,
    group_by: GroupBy | None,
    verifier: str | None,
    dry_run: bool,
    **asked: Any,
) -> None:
    """Import rollouts that other tools recorded: files, folders, patterns, zip archives.

    The format is recognised by content. New attempts go into the groups of their tasks; the same files again change
    nothing; an import that was interrupted goes on with the same command.
    """
    from core.importers.mapping_file import read_mapping

    options = ImportOptions(
        format=form,
        mapping=read_mapping(mapping) if mapping else {},
        group_by=group_by or "",
        verifier=verifier_named(verifier),
        **asked,
    )
    if not dry_run:
        done = desk.workspace.intake.add_rollouts(paths, options, desk.who, desk.progress)
    elif desk.there:
        done = desk.workspace.intake.look(paths, options, desk.progress)
    else:  # to look at a file makes no workspace
        from core.workspace.bringing import look

        done = look(None, paths, options, desk.progress)
    desk.answer(done, *told_of(done), set_aside=bool(done.set_aside_total))


@verb(rollouts, "formats")
def formats(desk: Desk) -> None:
    """List the formats that are recognised, in the order in which a file is tried for them, and what each brings."""
    from core.importers.brings import brought

    found = brought()
    rows = [(f.name, f.title, f.reward, f.repeats, f.steps) for f in found]
    desk.answer(found, *table(rows, ("--format", "what it is", "reward", "repeats", "steps")))


@verb(rollouts, "propose")
@click.argument("run_id")
@click.option("--extraction-endpoint", metavar="NAME", help="Have this endpoint draw lessons, too.")
@click.option("--withhold-answer", is_flag=True, help="Keep the right answers from it.")
@click.option("--max-calls", type=int, help="Cap on requests, for all that is sent for the run.")
@click.option("--max-tokens-total", type=int, help="Cap on tokens, likewise.")
@click.option("--max-cost-usd", type=float, help="Cap on money, likewise.")
@click.option("--retry-failed", is_flag=True, help="Ask anew about groups that could not be contrasted.")
@click.option("--dry-run", is_flag=True, help="Only say what it takes.")
def propose(
    desk: Desk,
    run_id: str,
    extraction_endpoint: str | None,
    retry_failed: bool,
    dry_run: bool,
    **settings: Any,
) -> None:
    """Draw lessons from the recorded rollouts of a run.

    No model is asked, unless an endpoint is named: then each attempt is summarised, each group contrasted, and what
    came of it consolidated, as in `winnow run`. The same command again goes on where it stopped, and pays for nothing
    twice.
    """
    learning, asked = desk.workspace.learning, None
    given = {name: value for name, value in settings.items() if value not in (None, False)}
    if extraction_endpoint:
        asked = learning.asking(run_id, extraction_endpoint, **given)
    elif given or retry_failed or dry_run:
        raise InputError(
            "No model is asked without --extraction-endpoint NAME; the other options belong to it."
        )
    if asked and dry_run:
        plan = learning.plan_drawing(run_id, asked)
        desk.answer(plan, *takes(plan))
        return
    drawn = learning.propose(run_id, desk.who, desk.progress, asked, retry_failed=retry_failed)
    desk.answer(
        {**told(drawn.run), "drawn": plain(drawn.made)},
        *drawn_lines(drawn),
        *drawn.made.notes,
        set_aside=bool(asked and drawn.made.not_contrasted),
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
