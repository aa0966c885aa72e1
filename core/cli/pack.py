"""`winnow pack`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from core.cli.desk import Desk, foreign_file, one_line, plural, verb
from core.errors import InputError, UnknownFormError
from core.experience import GENERAL, check_domain, same_domain
from core.packs.check import verify_pack
from core.packs.pack import MAX_PACK_BYTES


@click.group()
def pack() -> None:
    """Packs: a version of the library, ready for your agents."""


@verb(pack, "export")
@click.option(
    "--form",
    default="pack",
    show_default=True,
    help="pack, prompt, agents-md, skill, loader, agent-yaml, playbook, csv or json.",
)
@click.option("--version", "named", help="Of this version, a number or a label; default: the newest.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Where to; - is standard output. Default: the pack's own name.",
)
@click.option("--name", default="winnow", show_default=True, help="Name of the pack.")
@click.option("--domain", help="Only what is injected for tasks of this domain.")
@click.option(
    "--least",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Only lessons of this confidence or more; default: all.",
)
@click.option("--prior", metavar="ID", help="Ship this token prior, too: in the form pack only.")
@click.option("--force", is_flag=True, help="Write over a file that holds something else.")
@click.option(
    "--no-provenance", "--redact", is_flag=True, help="Leave out who and what the lessons came from."
)
def export(
    desk: Desk, form: str, named: str | None, output: Path | None, no_provenance: bool, **what: Any
) -> None:
    """Export a version. The same version gives the same bytes.

    The form agents-md is written into a marked region of an existing file; the rest of that file is not touched.
    The form loader is a Python file that injects by domain and token budget and can log how the lessons did.
    What is kept and what is left out is said. What looks like a secret, or a lesson that names a path in somebody's
    home folder, is refused; local paths elsewhere are taken out.
    """
    shipping = desk.workspace.shipping
    number = desk.workspace.store.versions.resolve(named) if named else None
    if str(output) == "-":
        if desk.as_json:
            raise InputError("-o - gives the file itself, which is no JSON: leave --json out.")
        what.pop("force")
        sys.stdout.buffer.write(shipping.export(form, number, provenance=not no_provenance, **what).data)
        return
    done, target = shipping.write(
        form, output, desk.who, version=number, provenance=not no_provenance, **what
    )
    result = {
        "file": str(target),
        "sha256": done.sha256,
        "version": done.version,
        "experiences": done.experiences,
        "redaction": done.redaction.model_dump(mode="json"),
    }
    line = f"{target}: version {done.version}, {plural(done.experiences, 'experience')}, sha256 {done.sha256}"
    told = done.redaction
    lines = [line, f"In it: {'; '.join(told.kept)}.", f"Not in it: {'; '.join(told.left_out)}."]
    if told.paths:
        lines.append(f"{plural(told.paths, 'local path was', 'local paths were')} taken out.")
    desk.answer(result, *lines)


@verb(pack, "import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--form", help="pack, json, playbook, agent-yaml or csv; without it, the content tells.")
@click.option("--domain", help="Domain of lessons whose file names none; default: general.")
@click.option("--dry-run", is_flag=True, help="Only say what would come in.")
def import_pack(desk: Desk, file: Path, form: str | None, domain: str | None, dry_run: bool) -> None:
    """Import a pack, or a library that another system wrote: its lessons become proposals.

    What the library or an open proposal says already is joined with it. The same file again changes nothing.
    """
    data = foreign_file(file, MAX_PACK_BYTES)
    try:
        done = desk.workspace.shipping.arriving.library(
            data, file.name, desk.who, form=form, domain=_domain(domain), dry_run=dry_run
        )
    except UnknownFormError as e:
        raise InputError(f"{e} If it is one of these, name it with --form.") from e
    if done.before:
        desk.answer(
            done,
            f"{file.name} was imported at {done.before.imported_at} by {done.before.actor}: nothing changed.",
        )
        return
    lines = [f"{plural(done.lessons, 'lesson')} in {done.source}, read as {done.form}."]
    for new in done.new:
        what = f"{new.proposal_id or 'new'} ({one_line(new.their_id or new.place, 40)}): {one_line(new.text)}"
        lines.append(f"  {what}" + (f" [near {', '.join(new.near)}]" if new.near else ""))
        if new.too_long:
            lines.append(f"    {new.words} words: edit it before it can be approved.")
    lines += [f"  says what {j.into} says: {one_line(j.text)}" for j in done.joined]
    if done.aside:
        lines.append(f"{plural(len(done.aside), 'part')} set aside:")
        lines += [f"  {each.place}: {one_line(each.reason, 200)}" for each in done.aside[:20]]
    lines += [f"Note: {one_line(note, 200)}." for note in done.notes]
    joined = plural(len(done.joined), "was", "were")
    lines.append(f"{plural(len(done.new), 'proposal')}; {joined} there already.")
    if dry_run or done.new:
        lines.append("Nothing was written." if dry_run else "Next: winnow review list")
    desk.answer(done, *lines, set_aside=bool(done.aside))


@verb(pack, "verify")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def verify(desk: Desk, file: Path) -> None:
    """Check a pack: checksums, schema, and that nothing hides in it. No workspace is needed.

    A sound pack holds its four files and not a byte besides, and each of them is what pack.json tells.
    """
    check = verify_pack(foreign_file(file, MAX_PACK_BYTES))
    lines = [f"{file} is a sound pack: {plural(check.experiences, 'experience')} of version {check.version}."]
    if check.unknown:
        lines.append(
            f"Of format {check.schema_version}, a later one, these were not checked: {', '.join(check.unknown)}."
        )
    desk.answer(check, *lines, set_aside=bool(check.unknown))


def _domain(named: str | None) -> str | None:
    """The domain that an option names; `General` is refused where `general` is meant.

    Raises:
        InputError: it is none.
    """
    if named is None:
        return None
    if named != GENERAL and same_domain(named, GENERAL):
        raise InputError(
            f"--domain {named!r} differs from {GENERAL!r} only in case or spaces: name {GENERAL!r}."
        )
    try:
        return check_domain(named)
    except ValueError as e:
        raise InputError(f"--domain: {e}.") from e
