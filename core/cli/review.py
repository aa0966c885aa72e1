"""`winnow review`."""

from __future__ import annotations

from typing import get_args

import click

from core.cli.desk import Desk, hidden, plural, table, verb, visible
from core.experience import OPEN_STATUSES, Proposal, ProposalStatus, targets_of, text_of
from core.review import stale
from core.words import count_words

REVISION = click.option(
    "--revision", type=int, help="Refuse if it was changed since this revision was looked at."
)


@click.group()
def review() -> None:
    """Decide on proposals. What is approved is staged until `winnow publish`."""


@verb(review, "list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(get_args(ProposalStatus)),
    help="Default: what waits for a decision.",
)
@click.option("--all", "everything", is_flag=True, help="Decided ones, too.")
@click.option("--domain", default="")
@click.option("--run", "run_id")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0, 10**12), default=0)
def list_proposals(
    desk: Desk,
    statuses: tuple[str, ...],
    everything: bool,
    domain: str,
    run_id: str | None,
    limit: int,
    offset: int,
) -> None:
    """List proposals, the strongest evidence first."""
    wanted = () if everything else statuses or OPEN_STATUSES
    found, total = desk.workspace.store.proposals.page(
        wanted, domain=domain, run_id=run_id, limit=limit, offset=offset
    )
    rows = [(p.id, p.status, p.operation.op, p.extractor, _strength(p), _gist(p)) for p in found]
    lines = table(rows, ("proposal", "status", "operation", "extractor", "p", "text"))
    staged = len(desk.workspace.review.staged())
    lines.append(f"{len(found):,} of {total:,}; {plural(staged, 'proposal')} approved and not yet published.")
    desk.answer({"total": total, "proposals": found, "staged": staged}, *lines)


@verb(review, "show")
@click.argument("proposal_id")
def show(desk: Desk, proposal_id: str) -> None:
    """Show one proposal: the exact text, the evidence, where it came from."""
    found = desk.workspace.store.proposals.get(proposal_id)
    library = desk.workspace.store.versions.library()
    text = text_of(found.effective)
    lines = [
        f"{found.id}: {found.operation.op} "
        f"({found.status}, by the {found.extractor} extractor, revision {found.revision})"
    ]
    for target in targets_of(found.operation):
        now = library.experiences.get(target)
        lines += [f"--- {target} now", visible(now.text) if now else "(not there)"]
    if text is not None:
        edited = ", edited by the reviewer" if found.edited_text is not None else ""
        lines += [f"--- text ({plural(count_words(text), 'word')}{edited})", visible(text), *hidden(text)]
    lines += ["--- evidence", found.evidence.sentence or "none", *_findings(found)]
    if found.rationale:
        lines += ["--- rationale", visible(found.rationale)]
    if moved := stale(found, library):
        lines.append(f"STALE: {moved}")
    if found.decided_by:
        lines.append(
            f"{found.status} by {found.decided_by} at {found.decided_at}"
            + (f": {found.reason}" if found.reason else "")
        )
    lines.append(f"run {found.run_id}; example rollouts: {', '.join(found.evidence.rollout_ids[:6]) or '-'}")
    desk.answer(found, *lines)


def _findings(proposal: Proposal) -> list[str]:
    return [
        f"  {f.label}: winners {f.winners_with}/{f.winners}, losers {f.losers_with}/{f.losers}, "
        f"odds ratio {f.odds_ratio:.1f}, p {f.p:.2g}, corrected {f.p_corrected:.2g}, {plural(f.groups, 'group')}"
        for f in proposal.evidence.findings
    ]


def _strength(proposal: Proposal) -> str:
    ps = [f.p_corrected for f in proposal.evidence.findings]
    return "-" if not ps else f"{min(ps):.3f}" if min(ps) >= 0.001 else "<.001"


def _gist(proposal: Proposal) -> str:
    targets = ", ".join(targets_of(proposal.operation))
    return " ".join(part for part in (targets, text_of(proposal.effective) or "") if part)


@verb(review, "approve")
@click.argument("proposal_ids", nargs=-1, required=True)
@click.option("--text", help="Approve it with this text of your own (one proposal only).")
@REVISION
def approve(desk: Desk, proposal_ids: tuple[str, ...], text: str | None, revision: int | None) -> None:
    """Approve proposals: they are staged for the next version. All of them, or none."""
    if len(proposal_ids) > 1 and (text is not None or revision is not None):
        raise click.UsageError("--text and --revision go with one proposal.")
    with desk.workspace.store.writing():
        done = [
            desk.workspace.review.approve(i, desk.who, revision=revision, text=text) for i in proposal_ids
        ]
    desk.answer(
        done,
        *(f"{p.id} approved." for p in done),
        *(w for p in done for w in hidden(text_of(p.effective) or "")),
        "Publish with: winnow publish -m MESSAGE",
    )


@verb(review, "edit")
@click.argument("proposal_id")
@click.option("--text", required=True, help="Your own text, exactly as it is to be stored.")
@REVISION
def edit(desk: Desk, proposal_id: str, text: str, revision: int | None) -> None:
    """Give a proposal a text of your own; it still waits for a decision."""
    done = desk.workspace.review.edit(proposal_id, text, desk.who, revision=revision)
    desk.answer(done, f"{done.id} has your text now ({plural(count_words(text), 'word')}).", *hidden(text))


@verb(review, "reject")
@click.argument("proposal_id")
@click.option("--reason", "-r", required=True, help="Why; it is kept with the proposal.")
@REVISION
def reject(desk: Desk, proposal_id: str, reason: str, revision: int | None) -> None:
    """Turn a proposal down, with the reason."""
    done = desk.workspace.review.reject(proposal_id, reason, desk.who, revision=revision)
    desk.answer(done, f"{done.id} rejected. Take it back with: winnow review undo {done.id}")


@verb(review, "defer")
@click.argument("proposal_id")
@click.option("--reason", "-r", default="", help="Why; it is kept with the proposal.")
@REVISION
def defer(desk: Desk, proposal_id: str, reason: str, revision: int | None) -> None:
    """Put a proposal off; it stays in the queue."""
    done = desk.workspace.review.defer(proposal_id, reason, desk.who, revision=revision)
    desk.answer(done, f"{done.id} deferred.")


@verb(review, "undo")
@click.argument("proposal_id")
@REVISION
def undo(desk: Desk, proposal_id: str, revision: int | None) -> None:
    """Take the last decision on a proposal back, as long as it is not published."""
    done = desk.workspace.review.undo(proposal_id, desk.who, revision=revision)
    desk.answer(done, f"{done.id} waits for a decision again.")
