"""`winnow review list|show`: what waits, and everything about one proposal."""

from __future__ import annotations

from typing import get_args

import click

from core.cli.desk import Desk, hidden, one_line, plural, table, verb, visible
from core.experience import OPEN_STATUSES, Proposal, ProposalStatus, targets_of, text_of
from core.review import stale, standing
from core.words import count_words


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
    library = desk.workspace.store.versions.library()
    held = {claim.proposal_id: claim.holder for claim in desk.workspace.review.claims()}
    rows = [
        (p.id, standing(p, library), p.operation.op, p.extractor, _strength(p), held.get(p.id, "-"), gist(p))
        for p in found
    ]
    lines = table(rows, ("proposal", "status", "operation", "extractor", "p", "held by", "text"))
    staged = len(desk.workspace.review.staged())
    lines.append(f"{len(found):,} of {total:,}; {plural(staged, 'proposal')} approved and not yet published.")
    desk.answer({"total": total, "proposals": found, "staged": staged}, *lines)


@verb(review, "show")
@click.argument("proposal_id")
def show(desk: Desk, proposal_id: str) -> None:
    """Show one proposal: the exact text, the evidence, where it came from, every decision on it."""
    found = desk.workspace.store.proposals.get(proposal_id)
    desk.answer(found, *shown(desk, found))


def shown(desk: Desk, found: Proposal) -> list[str]:
    """Everything that a reviewer decides on, line by line."""
    library = desk.workspace.store.versions.library()
    text = text_of(found.effective)
    lines = [
        f"{found.id}: {found.operation.op} "
        f"({standing(found, library)}, by the {found.extractor} extractor, revision {found.revision})"
    ]
    if held := desk.workspace.review.holder(found.id):
        lines.append(f"held by {held.holder} until {held.until}")
    for target in targets_of(found.operation):
        now = library.experiences.get(target)
        there = now.text if now is not None and now.status == "live" else None
        if target in found.base_texts and there != found.base_texts[target]:
            lines += [f"--- {target} when this was proposed", visible(found.base_texts[target])]
        lines += [f"--- {target} now", "(not live)" if there is None else visible(there)]
    if text is not None:
        edited = ", edited by the reviewer" if found.edited_text is not None else ""
        lines += [f"--- text ({plural(count_words(text), 'word')}{edited})", visible(text), *hidden(text)]
    lines += ["--- evidence", found.evidence.sentence or "none", *_findings(found)]
    if found.rationale:
        lines += ["--- rationale", visible(found.rationale)]
    if found.status != "published" and (moved := stale(found, library)):
        lines.append(f"STALE: {moved}. Rebase it on the new text: winnow review rebase {found.id}")
    lines += ["--- decisions", *_decisions(desk, found)]
    lines.append(f"run {found.run_id}; example rollouts: {', '.join(found.evidence.rollout_ids[:6]) or '-'}")
    return lines


def _decisions(desk: Desk, proposal: Proposal) -> list[str]:
    lines = []
    for event, _ in desk.workspace.store.events.of(proposal.id):
        base = f" on version {event.data['base']}" if event.data.get("base") is not None else ""
        over = f", although {event.data['over']} held it" if event.data.get("over") else ""
        why = f": {one_line(str(event.data['reason']))}" if event.data.get("reason") else ""
        lines.append(f"{event.at} {event.actor} {event.kind.removeprefix('proposal.')}{base}{over}{why}")
    return lines


def _findings(proposal: Proposal) -> list[str]:
    return [
        f"  {f.label}: winners {f.winners_with}/{f.winners}, losers {f.losers_with}/{f.losers}, "
        f"odds ratio {f.odds_ratio:.1f}, p {f.p:.2g}, corrected {f.p_corrected:.2g}, {plural(f.groups, 'group')}"
        for f in proposal.evidence.findings
    ]


def _strength(proposal: Proposal) -> str:
    ps = [f.p_corrected for f in proposal.evidence.findings]
    return "-" if not ps else f"{min(ps):.3f}" if min(ps) >= 0.001 else "<.001"


def gist(proposal: Proposal) -> str:
    """What it changes, and to what."""
    targets = ", ".join(targets_of(proposal.operation))
    return " ".join(part for part in (targets, text_of(proposal.effective) or "") if part)
