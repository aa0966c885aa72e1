"""`winnow backup`, `restore`, `doctor` and `redact`: what may happen to a workspace, and what helps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from core.cli.desk import Desk, plural, verb
from core.errors import InputError

if TYPE_CHECKING:
    from core.workspace.care import Care, Restored
    from core.workspace.erasing import Erased

MAX_TEXT = 2**24
"""Characters of a file or a pipe that holds what has to go."""


def _care(desk: Desk) -> Care:
    """Without opening the workspace: it may be damaged."""
    from core.workspace import workspace_path
    from core.workspace.care import Care

    return Care(workspace_path(desk.folder))


@verb(None, "backup")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def backup(desk: Desk, file: Path | None) -> None:
    """Copy a workspace into one file, consistently, while it is used.

    FILE is the file, or a folder for it; by default it goes into backups/ of the workspace, named by the time. A file
    that is there is never written over. The backup is checked before it gets its name. Packs are not in it: the same
    version gives the same bytes again. It holds everything that the workspace holds: guard it alike.
    """
    made = _care(desk).backup(file, desk.who)
    counts = made.manifest.counts
    desk.answer(
        made.model_copy(update={"path": made.path.absolute()}),
        f"{made.path}: version {made.manifest.version}, {plural(counts.get('rollouts', 0), 'rollout')},"
        f" {plural(counts.get('proposals', 0), 'proposal')}; {made.size:,} bytes, checked.",
        f"To go back to it: winnow restore {made.path}",
    )


@verb(None, "restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(desk: Desk, file: Path) -> None:
    """Put a backup in the place of a workspace; what was there is kept as a backup beside it.

    FILE is what `winnow backup` made, or a copy from before an upgrade (winnow.before-....db). It is checked first; one
    of a newer Winnow is refused. Nothing happens while a worker or a run is at work. Ids and numbers of versions that
    were given after the backup are not given again. A redaction made after it is not undone silently: it is named, the
    exit code is 1, and the doctor names it until the same text is redacted again.
    """
    done = _care(desk).restore(file, desk.who)
    manifest = done.manifest
    lines = [
        f"The workspace is at version {manifest.version} again"
        + (f", as of {manifest.made_at}." if manifest.made_at else ".")
    ]
    if done.kept is not None:
        lines.append(f"What was there is kept in {done.kept}.")
    lines += _warned(done)
    lines.append(f"To go back: {done.back}" if done.back.startswith("winnow ") else done.back)
    desk.answer(done, *lines, set_aside=bool(done.redactions or done.held))


def _warned(done: Restored) -> list[str]:
    """What a restore brought back, or could not see to."""
    said = []
    if done.versions:
        numbers = f"{done.versions[0]} to {done.versions[-1]}" if done.versions[1:] else str(done.versions[0])
        said.append(f"Versions given after the backup ({numbers}) are passed over: they read the same.")
    if done.redactions:
        named = plural(len(done.redactions), "redaction was", "redactions were")
        said.append(
            f"{named} made after this backup ({_numbers(done.redactions)}), which may hold what was taken out: redact"
            " the same texts again, with --remove-copies if backups are to go, too."
        )
    if done.held:
        said.append(
            f"What is kept of before may hold what {_numbers(done.held)} took out: winnow redact --remove-copies with"
            " the same text removes it."
        )
    if not done.compared:
        said.append(
            "What was there cannot be read: redactions made after the backup are not known, and ids given after it may"
            " be given again."
        )
    return said


def _numbers(redactions: Sequence[int]) -> str:
    return ", ".join(f"#{number}" for number in redactions)


@verb(None, "doctor")
@click.option(
    "--fix", is_flag=True, help="Mend what is safe, after a backup: indexes, dead leases, left-overs, space."
)
def doctor(desk: Desk, fix: bool) -> None:
    """Check a workspace: pages, schema, references, every row, the log against the tables, model files, disk, rights.

    Each finding says what, where, and how to mend it. Exit code 0 when all is well, 1 with findings.
    """
    from core.workspace.checkup import Checkup, Diagnosis

    checkup = Checkup(_care(desk))
    found = checkup.fix(desk.who) if fix else Diagnosis(findings=tuple(checkup.check()))
    lines = [f"Mended: {one.what} ({one.where})." for one in found.mended]
    if found.backup is not None:
        lines.append(f"The backup from before: {found.backup}")
    lines += [f"{one.where}: {one.what}. {one.how}" for one in found.findings]
    if not found.findings:
        lines.append("Nothing is wrong.")
    desk.answer(found, *lines, set_aside=bool(found.findings))


@verb(None, "redact")
@click.argument("file", required=False, type=click.File("r", encoding="utf-8"))
@click.option(
    "--lines", is_flag=True, help="Each line of FILE is a text of its own; else all of it is one text."
)
@click.option(
    "--text", "typed", multiple=True, help="A text, typed here: it stays in the history of your shell."
)
@click.option("--task", multiple=True, metavar="ID", help="What a task says: question and answer.")
@click.option(
    "--rollout", multiple=True, metavar="ID", help="What a rollout says: its answer, replies, outputs."
)
@click.option("--experience", multiple=True, metavar="ID", help="Every text that an experience ever had.")
@click.option("--proposal", multiple=True, metavar="ID", help="What a proposal says, its raw reply too.")
@click.option("--kind", default="secret", show_default=True, help="What kind of thing it is; this is kept.")
@click.option("--reason", default="", help="Why; this is kept.")
@click.option("--exact-case", is_flag=True, help="Leave the same letters in the other case.")
@click.option(
    "--remove-copies", is_flag=True, help="Remove backups and copies from before upgrades that hold it."
)
@click.option("--yes/--dry-run", default=False, help="Do it, or only count (the default).")
def redact(
    desk: Desk,
    file: IO[str] | None,
    lines: bool,
    typed: tuple[str, ...],
    kind: str,
    reason: str,
    exact_case: bool,
    remove_copies: bool,
    yes: bool,
    **named: tuple[str, ...],
) -> None:
    """Remove a secret or personal data everywhere, for good, and prove it.

    FILE holds the text; - is standard input, which is also read where nothing is named and something is piped in.
    Literal texts only; the other case, escapes of JSON and addresses, UTF-16 and base64 are found, too. Without --yes
    it is only counted.

    In its place stands "[redacted 2026-11-29 #3]". Live experiences that held it leave the library in a new version,
    undecided and approved proposals are rejected, cached replies are dropped. The file is then written anew, and every
    file of the workspace is searched. Packs and backups are never rewritten: they are listed. What was redacted
    is not kept; that it was, by whom, when and why is.
    """
    from core.workspace.erasing import Erasing

    care = _care(desk)
    care.check_there()
    erasing = Erasing(desk.workspace)
    if file is None and not typed and not any(named.values()):
        file = _piped()
    texts = [*typed, *_texts_in(file, lines)]
    for what, names in named.items():
        texts += [text for name in names for text in erasing.texts_of(what, name)]
    if typed:
        click.echo(
            "Warning: what you typed stays in the history of your shell; a file or - does not.", err=True
        )
    done = erasing.redact(
        texts,
        desk.who,
        kind=kind,
        reason=reason,
        exact_case=exact_case,
        copies=remove_copies,
        dry_run=not yes,
    )
    desk.answer(done, *_told(done), set_aside=yes and not done.proved)


def _piped() -> IO[str]:
    """Standard input, where something is piped in.

    Raises:
        InputError: a person sits there.
    """
    if sys.stdin.isatty():
        raise InputError(
            "Say what has to go: a FILE that holds it, a pipe into this command, or --task, --rollout, --experience, "
            "--proposal; --text takes it here, but it stays in the history of your shell."
        )
    piped: IO[str] = click.File("r", encoding="utf-8").convert("-", None, None)
    return piped


def _texts_in(file: IO[str] | None, lines: bool) -> list[str]:
    """The texts of a file, without the mark and the line end that editors put around them.

    Raises:
        InputError: it is no text, or larger than any that is looked for.
    """
    if file is None:
        return []
    try:
        text = file.read(MAX_TEXT + 1)
    except UnicodeDecodeError as e:
        raise InputError("What holds the text is not UTF-8; texts are looked for as characters.") from e
    if len(text) > MAX_TEXT:
        raise InputError(
            f"What holds the text has more than {MAX_TEXT:,} characters; give less of it at once."
        )
    text = text.removeprefix("\ufeff")
    texts = text.splitlines() if lines else [text.removesuffix("\n")]
    return [text for text in texts if text]


def _told(done: Erased) -> list[str]:
    found = sum(done.places.values())
    said = [f"{plural(found, 'occurrence')} in {plural(len(done.places), 'place')} of the database."]
    said += [f"  {place}: {count:,}" for place, count in done.places.items()]
    if done.redactions:
        said.append(f"In their place: {', '.join(redaction.tombstone for redaction in done.redactions)}")
    if done.version is not None:
        verb = "would be" if done.dry_run else "is"
        said.append(f"Version {done.version} of the library {verb} without {', '.join(done.experiences)}.")
    if done.proposals:
        said.append(f"{'Would be rejected' if done.dry_run else 'Rejected'}: {', '.join(done.proposals)}.")
    if done.calls_dropped or done.embeddings_dropped:
        cached = f"{plural(done.calls_dropped, 'cached reply', 'cached replies')} and "
        said.append(f"Dropped: {cached}{plural(done.embeddings_dropped, 'embedding')}.")
    if done.imports_dropped:
        verb = "would be" if done.dry_run else "was"
        said.append(
            f"What {plural(done.imports_dropped, 'interrupted import')} had read {verb} dropped. Import the files "
            "again: where they hold the text, it comes back with them."
        )
    said += [f"Rewritten: {name}" for name in done.logs] + [f"Removed: {name}" for name in done.removed]
    if done.by_chance:
        said.append(
            f"{plural(done.by_chance, 'id, hash or time', 'ids, hashes or times')} hold it by chance and stay."
        )
    said += [f"Still in {found.file} ({found.count:,}): {found.what}" for found in done.left]
    if done.dry_run:
        return [*said, "Nothing was changed; --yes does it."]
    proof = "Every file of the workspace was searched: nothing is left."
    return [*said, proof if done.proved else "It is not proved that nothing is left."]
