"""`winnow tasks`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from core.cli.desk import Desk, one_line, plural, table, verb
from core.errors import InputError
from core.rollout import SPLITS
from core.settings import VerifierSpec
from core.verifiers import make_verifier
from core.workspace.intake import TasksImported


@click.group()
def tasks() -> None:
    """Tasks: problems with a checkable outcome."""


@verb(tasks, "import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--map",
    "pairs",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Take a field from a column, e.g. --map question=prompt.",
)
@click.option(
    "--verifier", help='What checks answers: a kind such as numeric, or JSON {"kind": ..., "options": {...}}.'
)
@click.option("--domain", help="Domain of tasks whose row names none.")
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    help="Put all tasks into this split; else the file's own, or 40/30/30.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the splits.")
@click.option("--dry-run", is_flag=True, help="Only say what would come in.")
def import_tasks(
    desk: Desk,
    file: Path,
    pairs: tuple[str, ...],
    verifier: str | None,
    domain: str | None,
    split: str | None,
    seed: int,
    dry_run: bool,
) -> None:
    """Import tasks from a JSONL, JSON, CSV or Parquet FILE.

    Columns are found by their usual names (question, prompt, problem; answer, target, label; ...). Every row
    that cannot become a task is reported with its line and the reason, and set aside.
    """
    from core.importers.tasks import read_tasks
    from core.workspace.intake import would_import

    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    found = read_tasks(
        file,
        name=file.name,
        mapping=_mapping(pairs),
        verifier=verifier_named(verifier),
        domain=domain,
        split=split,  # type: ignore[arg-type]  # click checked it
        seed=seed,
    )
    if not found.rows:
        raise InputError(f"{file.name} holds no rows, so there is nothing to import.")
    if not dry_run or desk.there:
        found = desk.workspace.intake.as_here(found)
    if not dry_run:
        done = desk.workspace.intake.add_tasks(found, file.name, desk.who)
    elif desk.there:
        done = desk.workspace.intake.weigh_tasks(found, file.name)
    else:  # to look at a file makes no workspace
        done = would_import(found, file.name)
    lines = [
        f"{plural(done.added, 'task')} {'would come in' if dry_run else 'imported'} from {done.source}"
        + (f"; {done.known:,} already there" if done.known else "")
        + ("; nothing was imported." if dry_run else ".")
    ]
    lines += [f"  {field} <- {column}" for field, column in done.mapping.items()] if dry_run else []
    if done.duplicates:
        lines.append(f"{plural(done.duplicates, 'row')} repeated another one word for word.")
    if done.same_text:
        lines.append(
            f"{plural(done.same_text, 'task')} asked what an earlier one asks; kept, in the same split."
        )
    if done.moved:
        lines.append(f"{plural(len(done.moved), 'task')} joined the split of a task with the same text.")
    lines += _answered(len(done.answered), dry_run) + _splits(done)
    lines += _aside([(r.line, r.reason) for r in done.set_aside]) + list(done.notes)
    desk.answer(done, *lines, set_aside=bool(done.set_aside))


def _answered(count: int, dry_run: bool) -> list[str]:
    if not count:
        return []
    got = "would get" if dry_run else "got"
    return [
        f"{plural(count, 'task')} {got} an answer and what checks it, and can be sampled. Rewards that are there stay "
        "as they are; winnow rescore RUN --verifier NAME=KIND judges anew."
    ]


def _splits(done: TasksImported) -> list[str]:
    """Where the tasks go, and where those stay that were there: only train tasks teach."""
    where = ", ".join(f"{done.splits[split]:,} {split}" for split in SPLITS if done.splits.get(split))
    stay = ", ".join(f"{done.stay[split]:,} {split}" for split in SPLITS if done.stay.get(split))
    lines = [f"Splits: {where}; trial tasks select lessons, final tasks only report."] if where else []
    if stay:
        lines.append(
            f"Tasks that were there stay in the split that they have ({stay}), whatever is asked for."
        )
    return lines


def _aside(rows: list[tuple[int, str]]) -> list[str]:
    if not rows:
        return []
    shown = [f"  line {line}: {one_line(reason, 200)}" for line, reason in rows[:20]]
    more = [f"  and {len(rows) - 20:,} more: winnow tasks aside"] if len(rows) > 20 else []
    return [f"{plural(len(rows), 'row')} set aside:", *shown, *more]


def _mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    mapping = {}
    for pair in pairs:
        field, equals, column = pair.partition("=")
        if not (field and equals and column):
            raise InputError(f"--map {pair!r} is not FIELD=COLUMN; write for example --map question=prompt.")
        mapping[field.strip()] = column.strip()
    return mapping


def verifier_named(text: str | None) -> VerifierSpec | None:
    """The verifier of an option `--verifier`: a kind, or JSON; None where it was not given.

    Raises:
        InputError: it cannot be built.
    """
    if text is None:
        return None
    if not text.lstrip().startswith("{"):
        spec = VerifierSpec(kind=text.strip())
    else:
        try:
            spec = VerifierSpec.read(json.loads(text), where="--verifier")
        except ValueError as e:
            raise InputError(f"--verifier is not valid JSON: {e}.") from e
    make_verifier(spec)
    return spec


@verb(tasks, "list")
@click.option("--split", type=click.Choice(SPLITS), default=None)
@click.option("--domain", default="")
@click.option("--search", default="", help="Part of the question, or an id.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0, 10**12), default=0)
def list_tasks(desk: Desk, split: str | None, domain: str, search: str, limit: int, offset: int) -> None:
    """List tasks."""
    found, total = desk.workspace.store.tasks.page(
        split=split or "", domain=domain, search=search, limit=limit, offset=offset
    )
    rows = [(t.id, t.split, t.domain, t.verifier.kind, t.question) for t in found]
    lines = [*table(rows, ("id", "split", "domain", "verifier", "question")), f"{len(found):,} of {total:,}"]
    desk.answer({"total": total, "tasks": found}, *lines)


@verb(tasks, "aside")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True)
def aside(desk: Desk, limit: int) -> None:
    """Show the rows that were set aside, with the reason."""
    rows = desk.workspace.store.tasks.kept_aside(limit)
    lines = [
        f"{one_line(r.source, 100)}{f' line {r.line}' if r.line else ''}: {one_line(r.reason, 200)}"
        for r in rows
    ] or ["No row was set aside."]
    desk.answer(rows, *lines)
