"""`winnow review list|show`: what waits, and everything about one proposal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import click

from core.cli.desk import Desk, hidden, one_line, plain, plural, table, verb, visible
from core.cli.eval_told import measured_line, short_effect
from core.experience import (
    BASE_FIELDS,
    MAX_WORDS,
    OPEN_STATUSES,
    Proposal,
    ProposalStatus,
    fields_of,
    targets_of,
    text_of,
)
from core.library import Library
from core.review import Grounds, grounds, outdated, stale, standing
from core.review.grounds import Example
from core.store.queue import Order, ProposalQueue, Sieve
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
@click.option("--run", "run_id", default="")
@click.option(
    "--order",
    type=click.Choice(get_args(Order)),
    default="evidence",
    show_default=True,
    help="effect: as measured on trial tasks; uncertainty: what is least known of first.",
)
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0, 10**12), default=0)
def list_proposals(
    desk: Desk,
    statuses: tuple[str, ...],
    everything: bool,
    domain: str,
    run_id: str,
    order: Order,
    limit: int,
    offset: int,
) -> None:
    """List proposals, the strongest evidence first; what was measured of each stands beside it."""
    sieve = Sieve(
        statuses=() if everything else statuses or OPEN_STATUSES, domain=domain, run_id=run_id.upper()
    )
    found, total = ProposalQueue(desk.workspace.store).page(sieve, order=order, limit=limit, offset=offset)
    measured = desk.workspace.store.evaluations.newest_measured([p.id for p in found])
    library = desk.workspace.store.versions.library()
    held = {claim.proposal_id: claim.holder for claim in desk.workspace.review.claims()}
    rows = [
        (
            p.id,
            standing(p, library),
            p.operation.op,
            p.extractor,
            _strength(p),
            short_effect(measured.get(p.id)),
            held.get(p.id, "-"),
            gist(p),
        )
        for p in found
    ]
    head = ("proposal", "status", "operation", "extractor", "p", "measured", "held by", "text")
    lines = table(rows, head)
    changed = outdated(desk.workspace.store, found)
    lines += [f"{i}: {told}" for i, told in changed.items()]
    staged = len(desk.workspace.review.staged())
    lines.append(f"{len(found):,} of {total:,}; {plural(staged, 'proposal')} approved and not yet published.")
    said = {
        "total": total,
        "proposals": found,
        "staged": staged,
        "measured": plain(measured),
        "outdated": changed,
    }
    desk.answer(said, *lines)


@verb(review, "show")
@click.argument("proposal_id")
def show(desk: Desk, proposal_id: str) -> None:
    """Show one proposal: the exact text, the evidence, where it came from, every decision on it."""
    found = desk.workspace.store.proposals.get(proposal_id)
    on, library = grounds(desk.workspace.store, found), desk.workspace.store.versions.library()
    more = {
        "standing": standing(found, library),
        "version": library.version,
        "stale": stale(found, library) if found.status != "published" else "",
        "words": count_words(text_of(found.effective) or ""),
        "grounds": plain(on),
        "measured": plain(desk.workspace.store.evaluations.measured_of(found.id)),
    }
    desk.answer({**plain(found), **more}, *shown(desk, found, on))


def shown(desk: Desk, found: Proposal, on: Grounds) -> list[str]:
    """Everything that a reviewer decides on, line by line."""
    library = desk.workspace.store.versions.library()
    lines = [f"{found.id}: {found.operation.op} ({standing(found, library)}, revision {found.revision})"]
    if found.reason:
        lines.append(f"because: {visible(found.reason)}")
    if held := desk.workspace.review.holder(found.id):
        lines.append(f"held by {held.holder} until {held.until}")
    lines += [*_origin(found, on), *_texts(found, library), *_rivals(on)]
    if measured := desk.workspace.store.evaluations.measured_of(found.id):
        lines += ["--- measured on trial tasks", *map(measured_line, measured)]
    lines += ["--- evidence", found.evidence.sentence or "none", *_findings(found)]
    lines += [f"OUTDATED: {on.outdated} {on.way_out}".rstrip()] if on.outdated else []
    lines += [f"THIN: {on.thin}."] if on.thin else []
    lines += [_example(one) for one in on.examples]
    if found.rationale:
        lines += ["--- rationale", visible(found.rationale)]
    if found.raw_reply:
        lines += ["--- the reply that it was read from", visible(found.raw_reply)]
    if found.status != "published" and (moved := stale(found, library)):
        lines.append(
            f"STALE: {moved}. Rebase it on the new text: "
            f"winnow review rebase {found.id} --on {library.version}"
        )
    return [*lines, "--- decisions", *_decisions(desk, found)]


def _origin(found: Proposal, on: Grounds) -> list[str]:
    learned = f"; learned on {found.learned_on}" if found.learned_on else ""
    counted = f"{plural(on.groups, 'group')}, {plural(on.rollouts, 'example')}"
    return [f"origin: {on.origin}{learned}; {counted}; starts with confidence {found.confidence:.2f}"]


def _texts(found: Proposal, library: Library) -> list[str]:
    """Each target as it was and as it is, and the text that would be stored."""
    lines = []
    for target in targets_of(found.operation):
        now = library.experiences.get(target)
        there = now.text if now is not None and now.status == "live" else None
        base = found.base_fields.get(target, {})
        same = now is not None and base.items() <= fields_of(now).items()
        if target in found.base_texts and (there != found.base_texts[target] or not same):
            lines += [f"--- {target} when this was proposed{_of(base)}", visible(found.base_texts[target])]
        if now is None or there is None:
            lines += [f"--- {target} now", "(not live)"]
        else:
            lines += [f"--- {target} now{_of(fields_of(now))}", visible(there)]
    text = text_of(found.effective)
    if text is not None:
        words = count_words(text)
        edited = ", edited by the reviewer" if found.edited_text is not None else ""
        over = f", at most {MAX_WORDS}: shorten it before it can be approved" if words > MAX_WORDS else ""
        lines += [f"--- text ({plural(words, 'word')}{over}{edited})", visible(text), *hidden(text)]
        lines.append(_placed(found, library))
    return lines


def _of(fields: Mapping[str, str]) -> str:
    told = ", ".join(f"{name} {fields[name]}" for name in BASE_FIELDS if name in fields)
    return f" ({told})" if told else ""


def _placed(found: Proposal, library: Library) -> str:
    """The kind and domain that a text would have, and what they are now where it changes them."""
    told = []
    target = next(iter(targets_of(found.operation)), None)
    now = library.experiences.get(target) if target else None
    for name in BASE_FIELDS:
        was, wanted = getattr(now, name, None), getattr(found.effective, name, None)
        changes = was is not None and wanted not in (None, was)
        told.append(f"{name} {was} -> {wanted}" if changes else f"{name} {wanted or was or '-'}")
    return ", ".join(told)


def _rivals(on: Grounds) -> list[str]:
    lines = []
    for one in on.rivals:
        why = " and ".join([*(["says the same"] if one.same else []), *(f"changes {i}" for i in one.shared)])
        lines.append(f"CONFLICT: {one.proposal_id} ({one.status}, {one.op}) {why}: {one_line(one.text)}")
    if on.across:
        lines.append(f"ACROSS: {on.across}.")
    if on.near.found:
        by = "words" if on.near.by == "words" else f"stored vectors of {on.near.by}"
        lines.append(f"--- nearest in the library, by {by}")
    for near in on.near.found:
        what = " (says the opposite)" if near.opposed else " (may say the same)" if near.alike else ""
        lines.append(f"{near.experience.id}{what} {visible(near.experience.text)}")
    return lines


def _example(one: Example) -> str:
    reward = "unscored" if one.reward is None else f"reward {one.reward:.2f}"
    side = "" if one.advantage is None else f", advantage {one.advantage:+.2f}"
    return f"  {one.rollout_id} ({reward}{side}) {one_line(one.says)}".rstrip()


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
