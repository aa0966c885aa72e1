"""`winnow review approve|edit|rebase|reject|defer|undo|revert`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, hidden, plural, verb
from core.cli.review.looking import gist, review
from core.experience import text_of
from core.words import count_words

REVISION = click.option(
    "--revision", type=int, help="Refuse if it was changed since this revision was looked at."
)
FORCE = click.option("--force", is_flag=True, help="Although somebody else holds it; the log tells.")


@verb(review, "approve")
@click.argument("proposal_ids", nargs=-1, required=True)
@click.option("--text", help="Approve it with this text of your own (one proposal only).")
@click.option("--reason", "-r", default="", help="Why; it is kept with the decision.")
@REVISION
@FORCE
def approve(
    desk: Desk,
    proposal_ids: tuple[str, ...],
    text: str | None,
    reason: str,
    revision: int | None,
    force: bool,
) -> None:
    """Approve proposals: they are staged for the next version. All of them, or none."""
    deciding = desk.workspace.review
    if len(proposal_ids) > 1:
        if text is not None or revision is not None:
            raise click.UsageError("--text and --revision go with one proposal.")
        done = deciding.approve_all(proposal_ids, desk.who, reason=reason, force=force)
    else:
        [one] = proposal_ids
        done = [deciding.approve(one, desk.who, revision=revision, text=text, reason=reason, force=force)]
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
@FORCE
def edit(desk: Desk, proposal_id: str, text: str, revision: int | None, force: bool) -> None:
    """Give a proposal a text of your own; it still waits for a decision."""
    done = desk.workspace.review.edit(proposal_id, text, desk.who, revision=revision, force=force)
    desk.answer(done, f"{done.id} has your text now ({plural(count_words(text), 'word')}).", *hidden(text))


@verb(review, "rebase")
@click.argument("proposal_id")
@click.option("--text", help="Your own text against the new one; default: the text as it is.")
@REVISION
@FORCE
def rebase(desk: Desk, proposal_id: str, text: str | None, revision: int | None, force: bool) -> None:
    """Base a stale proposal on the library as it is now, after you looked at the new text (winnow review show)."""
    done = desk.workspace.review.rebase(proposal_id, desk.who, text=text, revision=revision, force=force)
    desk.answer(
        done,
        f"{done.id} is based on version {done.base_version} now and can be approved.",
        *hidden(text or ""),
    )


@verb(review, "reject")
@click.argument("proposal_id")
@click.option("--reason", "-r", required=True, help="Why; it is kept with the proposal.")
@REVISION
@FORCE
def reject(desk: Desk, proposal_id: str, reason: str, revision: int | None, force: bool) -> None:
    """Turn a proposal down, with the reason."""
    done = desk.workspace.review.reject(proposal_id, reason, desk.who, revision=revision, force=force)
    desk.answer(done, f"{done.id} rejected. Take it back with: winnow review undo {done.id}")


@verb(review, "defer")
@click.argument("proposal_id")
@click.option("--reason", "-r", default="", help="Why; it is kept with the proposal.")
@REVISION
@FORCE
def defer(desk: Desk, proposal_id: str, reason: str, revision: int | None, force: bool) -> None:
    """Put a proposal off; it stays in the queue."""
    done = desk.workspace.review.defer(proposal_id, reason, desk.who, revision=revision, force=force)
    desk.answer(done, f"{done.id} deferred.")


@verb(review, "undo")
@click.argument("proposal_id")
@REVISION
@FORCE
def undo(desk: Desk, proposal_id: str, revision: int | None, force: bool) -> None:
    """Take the last decision on a proposal back, as long as it is not published."""
    done = desk.workspace.review.undo(proposal_id, desk.who, revision=revision, force=force)
    waits = "waits for a decision again" if done.status == "proposed" else f"is {done.status} again"
    desk.answer(done, f"{done.id} {waits}.")


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
