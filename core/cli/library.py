"""`winnow library`, `winnow publish`, `winnow rollback`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, plural, table, verb, visible
from core.review import Difference, differences


@click.group()
def library() -> None:
    """The library: experiences, where they came from, versions."""


@verb(library, "list")
@click.option("--version", "number", type=int, help="Of this version; default: the newest.")
@click.option("--domain", default="")
def list_experiences(desk: Desk, number: int | None, domain: str) -> None:
    """List the live experiences of a version."""
    found = desk.workspace.store.versions.library(number)
    kept = [e for e in found if not domain or e.domain == domain]
    rows = [(e.id, e.domain, e.kind, f"{e.confidence:.2f}", f"{e.wins}/{e.uses}", e.text) for e in kept]
    lines = table(rows, ("id", "domain", "kind", "confidence", "wins/uses", "text"))
    desk.answer(
        {"version": found.version, "experiences": kept},
        *lines,
        f"{plural(len(kept), 'experience')} in version {found.version}.",
    )


@verb(library, "show")
@click.argument("experience_id")
def show(desk: Desk, experience_id: str) -> None:
    """Show one experience: its exact text, the proposals, groups and rollouts it came from, its history."""
    experience, proposals = desk.workspace.review.origin(experience_id)
    history = desk.workspace.store.versions.history(experience_id)
    lines = [
        f"{experience.id} ({experience.status}, {experience.kind}, {experience.domain})",
        visible(experience.text),
        f"confidence {experience.confidence:.2f}, {plural(experience.uses, 'use')}, {plural(experience.wins, 'win')}; "
        f"learned on {experience.learned_on or 'no model: a person wrote it'}",
    ]
    for start, end, state in history:
        until = f"to before version {end}" if end else "until now"
        lines.append(f"  from version {start} {until} ({state.status}): {visible(state.text)}")
    for p in proposals:
        lines += [
            f"{p.id}: {p.operation.op} by the {p.extractor} extractor in {p.run_id or 'no run'}; "
            f"published in version {p.published_in} after {p.decided_by} decided at {p.decided_at}",
            f"  evidence: {p.evidence.sentence or 'none'}",
            f"  groups: {', '.join(p.evidence.group_ids[:12]) or '-'}",
            f"  rollouts: {', '.join(p.evidence.rollout_ids[:12]) or '-'}",
        ]
    states = [{"from": start, "to": end, "state": state} for start, end, state in history]
    desk.answer({"experience": experience, "history": states, "proposals": proposals}, *lines)


@verb(library, "versions")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
def versions(desk: Desk, limit: int) -> None:
    """List versions, the newest first."""
    found = desk.workspace.store.versions.newest(limit)
    rows = [(v.number, v.size, v.author, v.created_at, v.message) for v in found]
    desk.answer(found, *table(rows, ("version", "experiences", "author", "created", "message")))


@verb(library, "diff")
@click.argument("before", type=click.IntRange(0, 10**12))
@click.argument("after", type=click.IntRange(0, 10**12))
def diff(desk: Desk, before: int, after: int) -> None:
    """Show what differs between two versions."""
    versions = desk.workspace.store.versions
    found = differences(versions.library(before), versions.library(after))
    desk.answer(found, *difference_lines(found))


def difference_lines(found: tuple[Difference, ...]) -> list[str]:
    """Exact texts, before and after."""
    if not found:
        return ["Nothing differs."]
    lines = []
    for d in found:
        lines.append(f"{d.experience_id}{' (' + d.proposal_id + ')' if d.proposal_id else ''}")
        lines += [f"  - {visible(d.before)}"] if d.before is not None else []
        lines += [f"  + {visible(d.after)}"] if d.after is not None else []
    return lines


@verb(None, "publish")
@click.option("--message", "-m", default="", help="What the version is about.")
@click.option("--parent", type=int, help="Refuse if the newest version is another one.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def publish(desk: Desk, message: str, parent: int | None, dry_run: bool) -> None:
    """Publish all approved proposals as one new version: all of them, or none."""
    review = desk.workspace.review
    preview = review.preview()
    lines = difference_lines(preview.differences)
    tokens = f"Injected text: about {preview.tokens_before} tokens before, {preview.tokens_after} after."
    if dry_run:
        desk.answer(preview, *lines, tokens, "Nothing was published.")
        return
    version = review.publish(message, desk.who, parent=parent)
    desk.answer(
        version,
        *lines,
        tokens,
        f"Version {version.number} is published: {plural(version.size, 'experience')}.",
        "Next: winnow pack export, or winnow run --split trial to see answers with it.",
    )


@verb(None, "rollback")
@click.argument("number", type=click.IntRange(0, 10**12))
@click.option("--message", "-m", default="")
@click.option("--parent", type=int, help="Refuse if the newest version is another one.")
def rollback(desk: Desk, number: int, message: str, parent: int | None) -> None:
    """Make a new version that reads as version NUMBER did. Nothing is erased."""
    version = desk.workspace.review.rollback(number, desk.who, message=message, parent=parent)
    desk.answer(
        version,
        f"Version {version.number} reads as version {number} did: {plural(version.size, 'experience')}.",
    )
