"""`winnow review next|claim|release|claims`: one reviewer beside another."""

from __future__ import annotations

import click

from core.cli.desk import Desk, table, verb
from core.cli.review.deciding import FORCE
from core.cli.review.looking import review, shown
from core.review import LEASE_MINUTES, MOST_MINUTES, grounds

MINUTES = click.option(
    "--for",
    "minutes",
    type=click.FloatRange(0, MOST_MINUTES, min_open=True),
    default=LEASE_MINUTES,
    show_default=True,
    help="Minutes that nobody else gets it.",
)


@verb(review, "next")
@MINUTES
@click.option("--domain", default="")
@click.option("--run", "run_id")
@click.option("--skip", multiple=True, metavar="P-0001", help="Not this one; may be repeated.")
def take_next(desk: Desk, minutes: float, domain: str, run_id: str | None, skip: tuple[str, ...]) -> None:
    """Claim the next proposal that nobody else is looking at, and show it."""
    found = desk.workspace.review.next(desk.who, minutes=minutes, domain=domain, run_id=run_id, skip=skip)
    if found is None:
        desk.answer(None, "Nothing waits that nobody else holds.")
        return
    on = grounds(desk.workspace.store, found)
    answer = {"proposal": found, "claim": desk.workspace.review.holder(found.id), "grounds": on}
    desk.answer(answer, *shown(desk, found, on))


@verb(review, "claim")
@click.argument("proposal_id")
@MINUTES
@FORCE
def claim(desk: Desk, proposal_id: str, minutes: float, force: bool) -> None:
    """Claim one proposal by its id, or hold it for longer; says who holds it, if somebody else does."""
    done = desk.workspace.review.claim(proposal_id, desk.who, minutes=minutes, force=force)
    desk.answer(done, f"{done.proposal_id} is yours until {done.until}.")


@verb(review, "release")
@click.argument("proposal_id")
def release(desk: Desk, proposal_id: str) -> None:
    """Give a proposal back that you claimed."""
    released = desk.workspace.review.release(proposal_id, desk.who)
    desk.answer(
        {"released": released},
        f"{proposal_id} is free again."
        if released
        else f"You did not hold {proposal_id}; nothing was changed.",
    )


@verb(review, "claims")
def claims(desk: Desk) -> None:
    """List who holds what."""
    found = desk.workspace.review.claims()
    rows = [(c.proposal_id, c.holder, c.taken_at, c.until) for c in found]
    desk.answer(found, *table(rows, ("proposal", "held by", "since", "until")))
