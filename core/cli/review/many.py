"""One decision on many proposals: which are meant, and what would come of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

import click

from core.cli.desk import Desk, hidden, plural, table
from core.cli.review.looking import gist
from core.experience import Proposal, ProposalStatus, text_of
from core.review import Decision, Seen, Weighed

DONE: dict[Decision, str] = {
    "approve": "approved",
    "reject": "rejected",
    "defer": "deferred",
    "undo": "undone",
}
EVERYTHING = 1_000_000


class Meant(NamedTuple):
    """Which proposals are meant: those named, or those that a filter takes."""

    names: tuple[str, ...]
    statuses: tuple[str, ...]
    domain: str
    run_id: str | None
    dry_run: bool
    reason: str
    revision: int | None
    force: bool

    @property
    def filtered(self) -> bool:
        return bool(self.statuses or self.domain or self.run_id)

    def seen(self, desk: Desk) -> list[Seen]:
        """Those that are meant, each as it was looked at.

        Raises:
            click.UsageError: it is not said which, or said twice.
        """
        if bool(self.names) == self.filtered:
            raise click.UsageError(
                "Name proposals, or say which with --status, --domain and --run; one of the two."
            )
        if self.revision is not None and len(self.names) != 1:
            raise click.UsageError("--revision goes with one proposal; of several, write P-0001@3.")
        if self.names:
            return [_seen(name, self.revision) for name in self.names]
        found, _ = desk.workspace.store.proposals.page(
            self.statuses or ("proposed",), domain=self.domain, run_id=self.run_id, limit=EVERYTHING
        )
        return [Seen(p.id, p.revision) for p in sorted(found, key=lambda p: (len(p.id), p.id))]


def many(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which proposals are meant, for a command that takes a `Meant` of them."""

    @functools.wraps(command)
    def gathered(desk: Desk, proposal_ids: tuple[str, ...], **options: Any) -> None:
        told = {name: options.pop(name) for name in Meant._fields if name in options}
        command(desk, Meant(names=proposal_ids, **told), **options)

    taking: Callable[..., None] = gathered
    for option in reversed(OPTIONS):
        taking = option(taking)
    return taking


OPTIONS: Sequence[Callable[..., Callable[..., None]]] = (
    click.argument("proposal_ids", nargs=-1, metavar="[P-0001[@REVISION]]..."),
    click.option(
        "--status",
        "statuses",
        multiple=True,
        type=click.Choice(get_args(ProposalStatus)),
        help="All of it; may be repeated.",
    ),
    click.option("--domain", default="", help="All of it (of the --status; else what is proposed)."),
    click.option("--run", "run_id", help="All that were drawn from it, likewise."),
    click.option("--dry-run", is_flag=True, help="Only show what would come of each."),
    click.option("--reason", "-r", default="", help="Why; it is kept with the decision."),
    click.option("--revision", type=int, help="Refuse if it was changed since this revision was looked at."),
    click.option("--force", is_flag=True, help="Although somebody else holds it; the log tells."),
)


def decide(desk: Desk, decision: Decision, meant: Meant, *more: str) -> None:
    """Decide on what is meant, or show what would come of it.

    Those named are decided on all together, or none is; of those that a filter takes, the ones that fit.
    """
    review, seen = desk.workspace.review, meant.seen(desk)
    if meant.dry_run:
        _show(desk, decision, review.weigh(decision, seen, desk.who, force=meant.force))
        return
    left_out: list[Weighed] = []
    with desk.workspace.store.writing():  # what is left out is what did not fit then
        if meant.filtered:
            weighed = review.weigh(decision, seen, desk.who, force=meant.force)
            left_out = [one for one in weighed if one.refused]
            seen = [one.seen for one in weighed if not one.refused]
        done = review.decide_all(decision, seen, desk.who, reason=meant.reason, force=meant.force)
    lines = [_said(decision, p) for p in done] + [f"Left out: {one.refused}" for one in left_out]
    if decision == "approve":
        lines += [warning for p in done for warning in hidden(text_of(p.effective) or "")]
    lines += more if done else ()
    if not meant.filtered:
        desk.answer(done[0] if len(done) == 1 and decision != "approve" else done, *lines)
        return
    lines.append(f"{plural(len(done), 'proposal')} {DONE[decision]}, {len(left_out):,} left out.")
    answer = {"done": done, "left_out": [_plain(one) for one in left_out]}
    desk.answer(answer, *lines, set_aside=bool(left_out))


def _said(decision: Decision, done: Proposal) -> str:
    match decision:
        case "undo":
            waits = "waits for a decision again" if done.status == "proposed" else f"is {done.status} again"
            return f"{done.id} {waits}."
        case "reject":
            return f"{done.id} rejected. Take it back with: winnow review undo {done.id}"
        case _:
            return f"{done.id} {DONE[decision]}."


def _show(desk: Desk, decision: Decision, weighed: list[Weighed]) -> None:
    fits = [one for one in weighed if not one.refused]
    rows = [
        (f"{one.proposal.id}@{one.proposal.revision}", one.proposal.status, one.refused or gist(one.proposal))
        for one in weighed
    ]
    lines = table(rows, ("as seen", "status", f"text, or why it cannot be {DONE[decision]}")) if rows else []
    lines.append(
        f"{len(fits):,} of {plural(len(weighed), 'proposal')} can be {DONE[decision]}. Nothing was changed."
    )
    if fits:
        names = " ".join(f"{one.proposal.id}@{one.proposal.revision}" for one in fits)
        lines.append(f"Exactly those, as they are now: winnow review {decision} {names}")
    desk.answer({"decision": decision, "would": [_plain(one) for one in weighed]}, *lines)


def _plain(one: Weighed) -> dict[str, object]:
    return {
        "seen": f"{one.proposal.id}@{one.proposal.revision}",
        "refused": one.refused,
        "proposal": one.proposal,
    }


def _seen(name: str, revision: int | None) -> Seen:
    proposal_id, at, number = name.partition("@")
    if at and not (number.isascii() and number.isdigit()):
        raise click.UsageError(f"{name!r} is no proposal with a revision, such as P-0001@3.")
    return Seen(proposal_id, int(number) if at else revision)
