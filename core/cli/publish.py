"""`winnow publish`, `winnow rollback`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, plural, verb
from core.cli.library import difference_lines
from core.review import Preview

PARENT = click.option(
    "--parent", type=click.IntRange(0, 10**12), help="Refuse if the newest version is another one."
)


@verb(None, "publish")
@click.option("--message", "-m", default="", help="What the version is about.")
@PARENT
@click.option("--only", multiple=True, metavar="P-0001", help="Only this approved proposal; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def publish(desk: Desk, message: str, parent: int | None, only: tuple[str, ...], dry_run: bool) -> None:
    """Publish all approved proposals as one new version: all of them, or none."""
    review = desk.workspace.review
    with desk.workspace.store.writing():  # what is shown is what is published
        preview = review.preview(parent=parent, only=only or None)
        version = None
        if not dry_run:
            version = review.publish(message, desk.who, parent=preview.parent, only=only or None)
    lines = [*difference_lines(preview.differences), _tokens(preview)]
    if version is None:
        desk.answer(preview, *lines, "Nothing was published.")
        return
    desk.answer(
        version,
        *lines,
        f"Version {version.number} is published: {plural(version.size, 'experience')}.",
        "Next: winnow pack export, or winnow run --split trial to see answers with it.",
    )


def _tokens(preview: Preview) -> str:
    return f"Injected text: about {preview.tokens_before} tokens before, {preview.tokens_after} after."


@verb(None, "rollback")
@click.argument("version", metavar="VERSION")
@click.option("--message", "-m", default="", help="Why; it is kept with the version.")
@PARENT
def rollback(desk: Desk, version: str, message: str, parent: int | None) -> None:
    """Make a new version that reads as VERSION (a number or a label) did. Nothing is erased."""
    number = desk.workspace.store.versions.resolve(version)
    made = desk.workspace.review.rollback(number, desk.who, message=message, parent=parent)
    desk.answer(
        made,
        f"Version {made.number} reads as version {number} did: {plural(made.size, 'experience')}.",
    )
