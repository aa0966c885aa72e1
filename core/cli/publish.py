"""`winnow publish`, `winnow rollback`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, plain, plural, verb
from core.cli.differing import difference_lines, token_lines
from core.experience import Version
from core.review import Preview

PARENT = click.option(
    "--parent", type=click.IntRange(0, 10**12), help="Refuse if the newest version is another one."
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show what would change.")


@verb(None, "publish")
@click.option("--message", "-m", default="", help="What the version is about.")
@PARENT
@click.option("--only", multiple=True, metavar="P-0001", help="Only this approved proposal; may be repeated.")
@DRY_RUN
def publish(desk: Desk, message: str, parent: int | None, only: tuple[str, ...], dry_run: bool) -> None:
    """Publish all approved proposals as one new version: all of them, or none.

    What lessons earned since the newest version is counted in it; where nothing is approved, that alone makes one.
    """
    review, budget = desk.workspace.review, desk.workspace.models.injection_budget
    with desk.workspace.store.writing():  # what is shown is what is published
        preview = review.preview(parent=parent, only=only or None, budget_tokens=budget)
        version = None
        if not dry_run:
            version = review.publish(message, desk.who, parent=preview.parent, only=only or None)
    lines = [*difference_lines(preview.differences), *_tokens(preview)]
    if version is None:
        desk.answer(_answer(preview, None), *lines, "Nothing was published.")
        return
    desk.answer(
        _answer(preview, version),
        *lines,
        f"Version {version.number} is published: {plural(version.size, 'experience')}.",
        "Next: winnow pack export, or winnow run --split trial to see answers with it.",
    )


@verb(None, "rollback")
@click.argument("version", metavar="VERSION")
@click.option("--message", "-m", default="", help="Why; it is kept with the version.")
@PARENT
@DRY_RUN
def rollback(desk: Desk, version: str, message: str, parent: int | None, dry_run: bool) -> None:
    """Make a new version that reads as VERSION (a number or a label) did. Nothing is erased."""
    review, number = desk.workspace.review, desk.workspace.store.versions.resolve(version)
    budget = desk.workspace.models.injection_budget
    preview = review.preview_rollback(number, parent=parent, budget_tokens=budget)
    lines = [*difference_lines(preview.differences), *_tokens(preview)]
    if preview.redacted:
        lines.append(f"Left out, since their text was redacted: {', '.join(preview.redacted)}.")
    if dry_run:
        desk.answer(_answer(preview, None), *lines, "Nothing was rolled back.")
        return
    made = review.rollback(number, desk.who, message=message, parent=preview.parent)
    desk.answer(
        _answer(preview, made),
        *lines,
        f"Version {made.number} reads as version {number} did: {plural(made.size, 'experience')}.",
    )


def _tokens(preview: Preview) -> list[str]:
    return token_lines((preview.tokens_before, preview.tokens_after), preview.tokens_by_domain)


def _answer(preview: Preview, version: Version | None) -> dict[str, object]:
    """The version with what it changes; of a dry run, that it would be of that number, and the rest null."""
    told: dict[str, object] = dict.fromkeys(Version.model_fields)
    told |= {"number": preview.parent + 1} if version is None else plain(version)
    return {**told, **plain(preview), "published": version is not None}
