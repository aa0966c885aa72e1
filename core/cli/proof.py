"""`winnow proof`: the standing proof of docs/decisions/0015."""

from __future__ import annotations

import runpy
from pathlib import Path

import click

from core.cli.desk import Desk, verb

FOLDER = ".winnow-proof"
"""The proof has a workspace of its own: in another one somebody could have chosen something."""


@verb(None, "proof")
@click.option("--again", is_flag=True, help="The repetition: other tasks and seeds, twice the token budget.")
@click.option("--minutes", type=float, help="Leave out families, from the end, that take longer than this.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be done; ask no model.")
@click.option(
    "--write", type=click.Path(path_type=Path), help="Put the table between the marks of this file."
)
def proof(desk: Desk, again: bool, minutes: float | None, only_plan: bool, write: Path | None) -> None:
    """Learn on train tasks, publish by the gate, compare on final tasks; again, it does only what is missing."""
    from core.workspace import Workspace, workspace_path
    from core.workspace.proving import AGAIN, FIRST, as_markdown, fitting, prove, written_into

    plan = AGAIN if again else FIRST
    if minutes is not None:
        plan = fitting(plan, minutes)
    if only_plan:
        left = f"; left out: {', '.join(plan.left_out)}" if plan.left_out else ""
        desk.answer(
            plan, f"{', '.join(plan.families)}: about {plan.minutes:.0f} minutes on two cores at most{left}."
        )
        return
    workspace = Workspace(workspace_path(desk.folder or (f"{FOLDER}-again" if again else FOLDER)))
    done = prove(workspace, plan, tasks_of(plan.task_seed), f"proof tasks {plan.task_seed}", desk.progress)
    page = as_markdown(done, "make proof" + (" AGAIN=1" if again else ""))
    if write:
        written_into(write, page, "again" if again else "first")
    desk.answer(done, *page.splitlines())


def tasks_of(seed: int) -> bytes:
    """The tasks of the sample families, split by a seed, as `data/make_sample.py` makes them.

    Raises:
        InputError: that is not there (Winnow was not installed from its checkout).
    """
    from core.errors import InputError
    from core.workspace.sample import SAMPLE

    maker = SAMPLE.parent / "make_sample.py"
    if not maker.is_file():
        raise InputError(
            f"There is no {maker}: install Winnow from its checkout (pip install -e .) for its proof."
        )
    made = runpy.run_path(str(maker))
    lines: bytes = made["lines"](made["task_rows"](seed))
    return lines
