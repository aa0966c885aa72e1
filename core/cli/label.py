"""`winnow label`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, table, verb
from core.store.labels import Expected

FROM = click.option(
    "--from",
    "expected",
    metavar="VERSION",
    help="Refuse if it does not point at this version; `nothing`: if it is there already.",
)
FORCE = click.option("--force", is_flag=True, help="Although it is protected.")


@click.group()
def label() -> None:
    """Point names such as `production` at versions.

    A label stays where it is put until somebody moves it. A protected one is moved with --force only; `production` is
    protected from the start.
    """


@verb(label, "set")
@click.argument("name")
@click.argument("version")
@click.option("--protect/--no-protect", default=None, help="Whether it is protected from now on.")
@FROM
@FORCE
def set_label(
    desk: Desk, name: str, version: str, protect: bool | None, expected: str | None, force: bool
) -> None:
    """Point the label NAME at VERSION: a number, or another label."""
    pointing, workspace = _expected(expected), desk.workspace
    with workspace.store.writing():
        number = workspace.store.versions.resolve(version)
        done = workspace.review.set_label(
            name, number, desk.who, protect=protect, force=force, expected=pointing
        )
    desk.answer(done, f"{done.name} points at version {done.version}{_protected(done.protected)}.")


@verb(label, "list")
def list_labels(desk: Desk) -> None:
    """List the labels."""
    found = desk.workspace.store.labels.all()
    rows = [
        (one.name, one.version, "yes" if one.protected else "no", one.moved_by, one.moved_at) for one in found
    ]
    headers = ("label", "version", "protected", "moved by", "at")
    desk.answer(
        found,
        *(table(rows, headers) if found else ["There are no labels yet: winnow label set NAME VERSION"]),
    )


@verb(label, "remove")
@click.argument("name")
@FROM
@FORCE
def remove(desk: Desk, name: str, expected: str | None, force: bool) -> None:
    """Take a label away; the version stays."""
    pointing = _expected(expected)
    was = desk.workspace.review.remove_label(name, desk.who, force=force, expected=pointing)
    desk.answer(was, f"{was.name} is removed; it pointed at version {was.version}.")


def _expected(named: str | None) -> Expected:
    """A number, and no label: one that is resolved now is not what somebody saw before."""
    if named is None:
        return "anything"
    if named == "nothing":
        return "nothing"
    if not (named.isascii() and named.isdigit() and len(named) < 16):
        raise click.UsageError(f"--from takes the number of a version, or `nothing`, not {named!r}.")
    return int(named)


def _protected(protected: bool) -> str:
    return " and is protected" if protected else ""
