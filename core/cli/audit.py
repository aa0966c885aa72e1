"""`winnow audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from core.audits import AUDITS, Audit, Rules, Suggestion
from core.cli.desk import Desk, plural, table, verb, visible
from core.compression import STRATEGIES, Strategy
from core.experience import targets_of
from core.settings import N_MAX

if TYPE_CHECKING:
    from core.workspace.auditing import Audited


class _AllByDefault(click.Group):
    """`winnow audit --dry-run` is `winnow audit all --dry-run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        bare = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["all", *args] if bare else args)


@click.group(cls=_AllByDefault)
def audit() -> None:
    """Look for lessons to delete or to merge. Whatever is found becomes a proposal; nothing is deleted here.

    Without a command, all four audits are made. Made again, they propose nothing twice.
    """


DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show what would be proposed.")
EPOCH = click.option(
    "--epoch", type=click.IntRange(0, 10**9), help="The present epoch; default: the newest that is known."
)
LOOKS: dict[str, tuple[tuple[Audit, ...], str]] = {
    "unused": (("unused",), "Lessons without a use in the last 20 epochs, and no younger than that."),
    "confidence": (("confidence",), "Lessons that were tried 5 times and have a confidence of 0.10 at most."),
    "redundant": (("redundant",), "Pairs of a domain that are similar (cosine 0.85), and not opposed."),
    "capacity": (("capacity",), "What a library that is over its capacity can best do without (hybrid)."),
    "all": (AUDITS, "All four audits; each lesson is in one proposal at most."),
}


def _command(name: str, audits: tuple[Audit, ...], about: str) -> None:
    def look(desk: Desk, dry_run: bool, epoch: int | None) -> None:
        _answer(desk, Rules(audits=audits), dry_run, epoch)

    look.__doc__ = about
    verb(audit, name)(DRY_RUN(EPOCH(look)))


for _name, (_audits, _about) in LOOKS.items():
    _command(_name, _audits, _about)


@verb(audit, "compress")
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), default="hybrid", show_default=True, help="Which lessons go."
)
@click.option(
    "--to",
    type=click.IntRange(1, 10**9),
    help="Lessons that may stay; default: the capacity (importance: above that, the lowest 20 % go).",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Of the clusters.")
@DRY_RUN
@EPOCH
def compress(
    desk: Desk, strategy: Strategy, to: int | None, seed: int, dry_run: bool, epoch: int | None
) -> None:
    """Propose to delete lessons by one of the four strategies, until as many stay as may."""
    _answer(desk, Rules(audits=("capacity",), strategy=strategy, to=to, seed=seed), dry_run, epoch)


@verb(audit, "limit")
@click.argument("number", type=int, required=False)
def limit(desk: Desk, number: int | None) -> None:
    """Show the capacity of the library (N_max), or make it NUMBER live lessons; no lesson goes by that.

    Above it, the capacity audit and `winnow audit compress` suggest which lessons go.
    """
    auditing = desk.workspace.auditing
    if number is not None:
        auditing.set_n_max(number, desk.who)
    live = desk.workspace.overview().experiences
    desk.answer(
        {"n_max": auditing.n_max, "live": live, "default": N_MAX},
        f"The library may hold {plural(auditing.n_max, 'live lesson')} (N_max, default {N_MAX}); it holds {live:,}.",
    )


def _answer(desk: Desk, rules: Rules, dry_run: bool, epoch: int | None) -> None:
    found = desk.workspace.auditing.audit(rules, desk.who, dry_run=dry_run, epoch=epoch)
    desk.answer(found, *_lines(found, dry_run))


def _lines(found: Audited, dry_run: bool) -> list[str]:
    ids = found.proposal_ids or ["-"] * len(found.suggestions)
    rows = [(i, *_row(s)) for i, s in zip(ids, found.suggestions, strict=True)]
    lines = table(rows, ("proposal", "audit", "operation", "why")) if rows else []
    for s in found.suggestions:
        if s.rationale:
            lines += ["", f"{', '.join(targets_of(s.operation))}: {visible(s.rationale)}"]
    waiting = f"; {plural(found.waiting, 'lesson')} wait for a decision already" if found.waiting else ""
    would = "would be made" if dry_run else "made"
    what = plural(len(found.suggestions), "proposal")
    lines.append(f"{what} {would} on {plural(found.lessons, 'lesson')} of version {found.version}{waiting}.")
    if found.lessons > found.n_max:
        lines.append(
            f"The library may hold {found.n_max:,} lessons (winnow audit limit): it is over its capacity."
        )
    if found.proposal_ids:
        lines.append("Decide with: winnow review list")
    return lines


def _row(suggestion: Suggestion) -> tuple[str, str, str]:
    operation = suggestion.operation
    return (
        ", ".join(suggestion.audits),
        f"{operation.op} {', '.join(targets_of(operation))}",
        suggestion.sentence,
    )
