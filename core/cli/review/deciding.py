"""`winnow review approve|edit|rebase|reject|defer|undo|revert`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, hidden, plural, verb
from core.cli.review.looking import gist, review
from core.cli.review.many import Meant, decide, many
from core.cli.texts import with_text
from core.words import count_words

REVISION = click.option(
    "--revision", type=int, help="Refuse if it was changed since this revision was looked at."
)
VERSION = click.IntRange(0, 10**12)
FORCE = click.option("--force", is_flag=True, help="Although somebody else holds it; the log tells.")


@verb(review, "approve")
@many
@with_text("Approve it with this text of your own (one proposal only).")
def approve(desk: Desk, meant: Meant, text: str | None) -> None:
    """Approve proposals: they are staged for the next version. Of those named all, or none."""
    publish = "Publish with: winnow publish -m MESSAGE"
    if text is None:
        decide(desk, "approve", meant, publish)
        return
    if len(meant.names) != 1 or meant.dry_run:
        raise click.UsageError("--text goes with one proposal, and not with --dry-run.")
    [seen] = meant.seen(desk)
    done = desk.workspace.review.approve(
        seen.proposal_id,
        desk.who,
        revision=seen.revision,
        text=text,
        reason=meant.reason,
        force=meant.force,
    )
    desk.answer([done], f"{done.id} approved.", *hidden(text), publish)


@verb(review, "edit")
@click.argument("proposal_id")
@with_text("Your own text, exactly as it is to be stored.")
@REVISION
@FORCE
def edit(desk: Desk, proposal_id: str, text: str | None, revision: int | None, force: bool) -> None:
    """Give a proposal a text of your own; it still waits for a decision."""
    if text is None:
        raise click.UsageError("Give the text with --text TEXT, with --text - or with --text-file FILE.")
    done = desk.workspace.review.edit(proposal_id, text, desk.who, revision=revision, force=force)
    desk.answer(done, f"{done.id} has your text now ({plural(count_words(text), 'word')}).", *hidden(text))


@verb(review, "rebase")
@click.argument("proposal_id")
@with_text("Your own text against the new one; default: the text as it is.")
@click.option("--on", "version", type=VERSION, help="Refuse if the text changed again since this version.")
@REVISION
@FORCE
def rebase(
    desk: Desk, proposal_id: str, text: str | None, version: int | None, revision: int | None, force: bool
) -> None:
    """Base a stale proposal on the library as it is now, after you looked at the new text (winnow review show)."""
    done = desk.workspace.review.rebase(
        proposal_id, desk.who, text=text, revision=revision, version=version, force=force
    )
    desk.answer(
        done,
        f"{done.id} is based on version {done.base_version} now and can be approved.",
        *hidden(text or ""),
    )


@verb(review, "reject")
@many
def reject(desk: Desk, meant: Meant) -> None:
    """Turn proposals down; a reason has to be given, and is kept. Of those named all, or none."""
    decide(desk, "reject", meant)


@verb(review, "defer")
@many
def defer(desk: Desk, meant: Meant) -> None:
    """Put proposals off; they stay in the queue. Of those named all, or none."""
    decide(desk, "defer", meant)


@verb(review, "undo")
@many
def undo(desk: Desk, meant: Meant) -> None:
    """Take the last decision on proposals back, as long as they are not published. Of those named all, or none."""
    decide(desk, "undo", meant)


@verb(review, "revert")
@click.argument("proposal_id")
def revert(desk: Desk, proposal_id: str) -> None:
    """Propose what takes a published proposal back; approve and publish that as usual."""
    made = desk.workspace.review.revert(proposal_id, desk.who)
    ids = " ".join(p.id for p in made)
    desk.answer(
        made,
        *(f"{p.id}: {p.operation.op} {gist(p)}" for p in made),
        f"They wait for a decision; to approve them: winnow review approve {ids}",
    )
