"""`winnow pack`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from core.cli.desk import Desk, plural, verb
from core.errors import InputError


@click.group()
def pack() -> None:
    """Packs: a version of the library, ready for your agents."""


@verb(pack, "export")
@click.option(
    "--form", default="pack", show_default=True, help="pack, prompt, agents-md, skill, csv or json."
)
@click.option("--version", "number", type=int, help="Of this version; default: the newest.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="Where to; - is standard output. Default: the pack's own name.",
)
@click.option("--name", default="winnow", show_default=True, help="Name of the pack.")
@click.option("--domain", help="Only what is injected for tasks of this domain.")
@click.option("--force", is_flag=True, help="Write over a file that holds something else.")
@click.option("--no-provenance", is_flag=True, help="Leave out who and what the lessons came from.")
def export(
    desk: Desk, form: str, number: int | None, output: Path | None, no_provenance: bool, **what: Any
) -> None:
    """Export a version. The same version gives the same bytes.

    The form agents-md is written into a marked region of an existing file; the rest of that file is not touched.
    """
    shipping = desk.workspace.shipping
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
    }
    line = f"{target}: version {done.version}, {plural(done.experiences, 'experience')}, sha256 {done.sha256}"
    desk.answer(result, line)


@verb(pack, "verify")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def verify(desk: Desk, file: Path) -> None:
    """Check a pack: checksums, schema, and that nothing hides in it."""
    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    check = desk.workspace.shipping.verify(file.read_bytes())
    desk.answer(
        check,
        f"{file} is a sound pack: {plural(check.experiences, 'experience')} of version {check.version}.",
    )
