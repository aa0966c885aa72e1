"""`winnow review quarantine|adopt`: what could not become a proposal, until a person says what was meant."""

from __future__ import annotations

import click

from core.cli.desk import Desk, hidden, one_line, table, verb, visible
from core.cli.review.looking import review
from core.cli.texts import with_text
from core.experience import KINDS, Add, Delete, Merge, Modify, Operation


@verb(review, "quarantine")
@click.argument("item_id", required=False, metavar="[Q-0001]")
@click.option("--run", "run_id")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0, 10**12), default=0)
def quarantine(desk: Desk, item_id: str | None, run_id: str | None, limit: int, offset: int) -> None:
    """List what could not become a proposal, or show ITEM whole: the reason and the raw reply."""
    if item_id is not None:
        one = desk.workspace.store.proposals.quarantined_item(item_id)
        became = f"It became {one.proposal_id}." if one.proposal_id else ""
        way = became or f"Say what was meant: winnow review adopt {one.id} --text TEXT"
        origin = (
            f"from {one.item.run_id or 'nowhere'}, groups {', '.join(one.item.group_ids) or '-'}, at {one.at}"
        )
        lines = [f"{one.id}: {visible(one.item.reason)}", origin, "--- raw reply", visible(one.item.raw), way]
        desk.answer(one, *lines)
        return
    found, total = desk.workspace.store.proposals.quarantine_page(run_id=run_id, limit=limit, offset=offset)
    rows = [
        (q.id, q.item.run_id or "-", q.proposal_id or "-", one_line(q.item.reason), q.item.raw) for q in found
    ]
    lines = table(rows, ("item", "run", "became", "reason", "raw reply"))
    desk.answer({"total": total, "items": found}, *lines, f"{len(found):,} of {total:,}.")


@verb(review, "adopt")
@click.argument("item_id")
@click.option(
    "--op", type=click.Choice(["add", "modify", "delete", "merge"]), default="add", show_default=True
)
@click.option(
    "--target", "targets", multiple=True, metavar="E-0001", help="What it changes; may be repeated."
)
@with_text("Your own text, exactly as it is to be stored.")
@click.option("--kind", type=click.Choice(KINDS))
@click.option("--domain")
@click.option("--reason", "-r", default="", help="Why; it is kept with the proposal.")
def adopt(
    desk: Desk,
    item_id: str,
    op: str,
    targets: tuple[str, ...],
    text: str | None,
    kind: str | None,
    domain: str | None,
    reason: str,
) -> None:
    """Make a proposal of something in the quarantine: say what was meant."""
    operation = _operation(op, targets, text, kind, domain)
    done = desk.workspace.review.adopt(item_id, operation, desk.who, rationale=reason)
    desk.answer(
        done, f"{item_id} is proposed as {done.id} now; it waits for a decision.", *hidden(text or "")
    )


def _operation(
    op: str, targets: tuple[str, ...], text: str | None, kind: str | None, domain: str | None
) -> Operation:
    told: dict[str, object] = {"op": op}
    if op == "merge" and len(targets) < 2:
        raise click.UsageError("A merge needs at least two --target.")
    if op == "merge":
        told["experience_ids"] = targets
    elif op != "add" and len(targets) != 1:
        raise click.UsageError(f"A {op} needs exactly one --target.")
    elif op != "add":
        told["experience_id"] = targets[0]
    told |= {name: v for name, v in (("text", text), ("kind", kind), ("domain", domain)) if v is not None}
    makers: dict[str, type[Add | Modify | Delete | Merge]] = {
        "add": Add,
        "modify": Modify,
        "delete": Delete,
        "merge": Merge,
    }
    return makers[op].read(told, where=op)
