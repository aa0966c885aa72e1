"""`winnow library`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.cli.credit import credit, earned_lines
from core.cli.desk import Desk, hidden, plural, table, verb, visible
from core.cli.differing import difference_lines
from core.cli.texts import with_text
from core.errors import InputError
from core.experience import KINDS, Add, Delete, Experience, Kind, Merge, Modify, Operation
from core.review import differences
from core.store.versions import ORDERS, Order
from core.words import count_words

if TYPE_CHECKING:
    from core.workspace.by_hand import NearLesson

LIMIT = click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
OFFSET = click.option("--offset", type=click.IntRange(0, 10**12), default=0, help="Leave out so many.")


@click.group()
def library() -> None:
    """The library: experiences, where they came from, versions."""


@verb(library, "list")
@click.option("--version", "named", help="Of this version, a number or a label; default: the newest.")
@click.option("--domain", default="")
@click.option("--kind", type=click.Choice(KINDS), default=None)
@click.option(
    "--status", type=click.Choice(["live", "deleted", "merged", "all"]), default="live", show_default=True
)
@click.option("--sort", "order", type=click.Choice(list(ORDERS)), default="id", show_default=True)
@LIMIT
@OFFSET
def list_experiences(
    desk: Desk,
    named: str | None,
    domain: str,
    kind: Kind | None,
    status: str,
    order: Order,
    limit: int,
    offset: int,
) -> None:
    """List the experiences of a version, a page at a time."""
    versions = desk.workspace.store.versions
    version = versions.head() if named is None else versions.resolve(named)
    found, total = versions.page(
        None if named is None else version,
        domain=domain,
        kind=kind or "",
        status="" if status == "all" else status,
        order=order,
        limit=limit,
        offset=offset,
    )
    waiting = {}
    if named is None:
        waiting = {w.experience_id: w for w in desk.workspace.crediting.waiting({e.id for e in found})}
    rows = [
        (
            e.id,
            *([e.status] if status == "all" else []),
            e.domain,
            e.kind,
            f"{e.confidence:.2f}",
            _wins(e),
            e.text,
        )
        for e in found
    ]
    headers = (
        "id",
        *(["status"] if status == "all" else []),
        "domain",
        "kind",
        "confidence",
        "wins/uses",
        "text",
    )
    desk.answer(
        {
            "version": version,
            "total": total,
            "offset": offset,
            "experiences": found,
            "waiting": list(waiting.values()),
        },
        *table(rows, headers),
        *earned_lines(list(waiting.values())),
        f"{len(found):,} of {plural(total, 'experience')} in version {version}.{_more(len(found), total, offset)}",
    )


@verb(library, "search")
@click.argument("query")
@click.option("--dead", is_flag=True, help="Deleted and merged ones, too.")
@click.option("--domain", default="")
@click.option("--kind", type=click.Choice(KINDS), default=None)
@LIMIT
@OFFSET
def search(
    desk: Desk, query: str, dead: bool, domain: str, kind: Kind | None, limit: int, offset: int
) -> None:
    """Find experiences that hold all words and "phrases" of QUERY, the best first; matches stand between «»."""
    found, total = desk.workspace.store.search.find(
        query, dead=dead, domain=domain, kind=kind or "", limit=limit, offset=offset
    )
    lines = []
    for hit in found:
        e = hit.experience
        lines.append(f"{e.id} ({e.status}, {e.kind}, {e.domain}) {visible(hit.marked())}")
    lines.append(f"{len(found):,} of {plural(total, 'experience')} found.{_more(len(found), total, offset)}")
    desk.answer({"total": total, "offset": offset, "hits": found}, *lines)


@verb(library, "show")
@click.argument("experience_id")
@click.option("--full", is_flag=True, help="With the messages and steps of the example rollouts.")
def show(desk: Desk, experience_id: str, full: bool) -> None:
    """Show one experience: its exact text and history, what it earned, and its origin down to the rollouts."""
    from core.cli.eval_told import measured_line
    from core.cli.origins import dossier_lines
    from core.workspace.dossier import dossier

    found = dossier(desk.workspace.store, experience_id, trajectories=full)
    measured = [
        measured_line(one, experience_id.upper())
        for one in desk.workspace.measuring.of(experience_id.upper())
    ]
    desk.answer(
        found, *dossier_lines(found), *(["--- measured on trial tasks", *measured] if measured else [])
    )


@verb(library, "propose")
@with_text("The lesson, exactly as it is to be stored.")
@click.option("--kind", type=click.Choice(KINDS), default=None, help="Default: strategy, or as it was.")
@click.option("--domain", default=None, help="Default: general, or as it was.")
@click.option("--modify", metavar="ID", help="Change this experience to --text.")
@click.option("--delete", metavar="ID", help="Take this experience out.")
@click.option("--merge", metavar="ID ID...", help="Put --text in place of these; the first id lives on.")
@click.option("--reason", "-r", default="", help="Why; the reviewer sees it.")
@click.argument("others", nargs=-1)
def propose(
    desk: Desk,
    text: str | None,
    kind: Kind | None,
    domain: str | None,
    modify: str | None,
    delete: str | None,
    merge: str | None,
    reason: str,
    others: tuple[str, ...],
) -> None:
    """Propose a lesson of your own, or a change; it waits for a review like any other.

    \b
    winnow library propose --text "Read the file before you answer." --domain office
    winnow library propose --modify E-0007 --text "Read the file twice."
    winnow library propose --merge E-0001 E-0002 --text "Read the file and its columns first."
    winnow library propose --delete E-0007 -r "No longer true."
    """  # noqa: D301  (a backspace is how click is told to keep the lines)
    from core.workspace.by_hand import propose_by_hand

    operation = _operation(text, kind, domain, modify, delete, merge, others)
    workspace = desk.workspace
    written = propose_by_hand(workspace.store, operation, desk.who, workspace.comparing, rationale=reason)
    lines = [f"{written.proposal.id} waits for a review ({operation.op})."]
    if text is not None:
        lines += [f"--- text ({plural(count_words(text), 'word')})", visible(text), *hidden(text)]
    if written.near:
        lines += [f"--- nearest in the library, by {written.near_by}", *map(_near, written.near)]
    lines += [note for note in (written.near_note, written.rejected) if note]
    desk.answer(written, *lines, f"Next: winnow review approve {written.proposal.id}")


def _near(found: NearLesson) -> str:
    what = "says the opposite" if found.opposed else "may say the same" if found.alike else found.domain
    return f"{found.id} ({found.similarity:.2f}, {what}) {visible(found.text)}"


def _operation(
    text: str | None,
    kind: Kind | None,
    domain: str | None,
    modify: str | None,
    delete: str | None,
    merge: str | None,
    others: tuple[str, ...],
) -> Operation:
    if sum(option is not None for option in (modify, delete, merge)) > 1:
        raise InputError("--modify, --delete and --merge exclude each other.")
    if others and merge is None:
        raise InputError(f"Ids without --merge: {' '.join(others)}. Put the text after --text, in quotes.")
    if (text is None) != (delete is not None):
        raise InputError(
            "Give the lesson with --text or --text-file FILE."
            if text is None
            else "--delete takes no --text."
        )
    if (kind or domain) and (delete or merge):
        raise InputError("--kind and --domain go with a new lesson or with --modify.")
    given = {k: v for k, v in (("text", text), ("kind", kind), ("domain", domain)) if v is not None}
    if modify is not None:
        return Modify.read({"experience_id": modify, **given}, where="The change")
    if delete is not None:
        return Delete(experience_id=delete)
    if merge is not None and not others:
        raise InputError("A merge takes lessons together: name at least two experiences after --merge.")
    if merge is not None:
        return Merge.read({"experience_ids": [merge, *others], **given}, where="The merge")
    return Add.read(given, where="The lesson")


def _wins(experience: Experience) -> str:
    return f"{experience.wins}/{experience.uses}"


def _more(shown: int, total: int, offset: int) -> str:
    return f" The next page: --offset {offset + shown}." if offset + shown < total and shown else ""


@verb(library, "versions")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
def versions(desk: Desk, limit: int) -> None:
    """List versions, the newest first."""
    found = desk.workspace.store.versions.newest(limit)
    rows = [(v.number, v.size, v.author, v.created_at, v.message) for v in found]
    desk.answer(found, *table(rows, ("version", "experiences", "author", "created", "message")))


@verb(library, "diff")
@click.argument("before")
@click.argument("after")
def diff(desk: Desk, before: str, after: str) -> None:
    """Show what differs between two versions, each named by its number or a label."""
    versions = desk.workspace.store.versions
    found = differences(*versions.changed(versions.resolve(before), versions.resolve(after)))
    desk.answer(found, *difference_lines(found))


library.add_command(credit)
