"""`winnow prior`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.desk import Desk, foreign_file, one_line, plural, table, verb

if TYPE_CHECKING:
    from core.prior import Prior


@click.group()
def prior() -> None:
    """Token priors: what good replies say and bad ones do not, added to the logits of a model.

    Ids are of one tokenizer: a prior is refused wherever there is another one.
    """


@verb(prior, "derive")
@click.option(
    "--run", "run_ids", multiple=True, metavar="RUN", help="From this run; several times for several."
)
@click.option(
    "--experience",
    "experience_ids",
    multiple=True,
    metavar="ID",
    help="For this lesson, from its own groups.",
)
@click.option("--version", "named", help="From the runs that this version's lessons were learned in.")
@click.option(
    "--domain", "domains", multiple=True, help="Only tasks of this domain; several times for several."
)
@click.option("--k", type=int, default=16, show_default=True, help="Most tokens for a domain or lesson.")
@click.option("--support", type=int, default=5, show_default=True, help="Replies that must have a token.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Of the whole, 0.5 to 2.")
@click.option("--cap", type=float, default=3.0, show_default=True, help="Largest bias of one token.")
def derive(
    desk: Desk,
    run_ids: tuple[str, ...],
    experience_ids: tuple[str, ...],
    named: str | None,
    domains: tuple[str, ...],
    **rules: Any,
) -> None:
    """Derive a prior from rollouts of the split train. Without an option, from the newest version's runs.

    Tokens of right answers are left out, and so is what does not tell winners from losers on other tasks.
    """
    from core.prior import PriorRules

    workspace = desk.workspace
    version = None
    if not run_ids and not experience_ids:
        version = workspace.store.versions.resolve(named) if named else workspace.store.versions.head()
    made = workspace.priors.derive(
        desk.who,
        run_ids=run_ids,
        experience_ids=experience_ids,
        version=version,
        domains=domains,
        rules=PriorRules.read(rules, where="the options"),
        progress=desk.progress,
    )
    desk.answer(_told(made), *_lines(made), f"Look: winnow prior show {made.id}")


@verb(prior, "list")
def list_priors(desk: Desk) -> None:
    """List the priors, the newest first."""
    found = desk.workspace.priors.all()
    rows = [
        (
            p.id,
            p.tokenizer.name,
            p.tokenizer.sha256[:12],
            sum(len(f.tokens) for f in p.factors if f.eta > 0),
            ", ".join(f.domain for f in p.factors if f.eta > 0),
        )
        for p in found
    ]
    lines = (
        table(rows, ("id", "tokenizer", "hash", "tokens", "domains"))
        if rows
        else ["There is no token prior yet."]
    )
    desk.answer([_told(p) for p in found], *lines)


@verb(prior, "show")
@click.argument("prior_id")
@click.option("--endpoint", help="Show what is added at this endpoint, within its limits.")
@click.option("--domain", help="Of the tasks; without it, all factors together.")
def show(desk: Desk, prior_id: str, endpoint: str | None, domain: str | None) -> None:
    """Show a prior: its tokens with their counts, and how it did on tasks that they were not chosen on."""
    found = desk.workspace.priors.get(prior_id)
    told, lines = _told(found), _lines(found)
    for factor in found.factors:
        if domain is not None and factor.domain != domain:
            continue
        weight = f"q {factor.q:.2f}, weight {factor.eta:.2f}, scale {factor.alpha:.2f}"
        lines += ["", f"{factor.domain}{f' ({factor.source})' if factor.source else ''}: {weight}"]
        rows = [
            (
                "+" if t.sign > 0 else "-",
                t.id,
                f"{t.log_odds:+.2f}",
                f"{t.winners_with}/{t.winners}",
                f"{t.losers_with}/{t.losers}",
                repr(one_line(t.piece, 40) if t.piece.strip() else t.piece),
            )
            for t in factor.tokens
        ]
        lines += table(rows, ("", "token", "log odds", "winners", "losers", "text")) if rows else ["no token"]
    if endpoint is not None:
        bias = desk.workspace.priors.bias(prior_id, endpoint, domain=domain)
        told["logit_bias"] = {str(i): v for i, v in bias.values.items()}
        room = f"{plural(len(bias.values), 'token')} at {endpoint}"
        lines += [
            "",
            f"{room}; {bias.left_out} had no room, {bias.clipped} were capped.",
            str(told["logit_bias"]),
        ]
    desk.answer(told, *lines)


@verb(prior, "export")
@click.argument("prior_id")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Where to; default: the prior's own name."
)
@click.option("--force", is_flag=True, help="Write over a file that holds something else.")
def export(desk: Desk, prior_id: str, output: Path | None, force: bool) -> None:
    """Write a prior as logit_bias JSON, with its tokenizer. `winnow pack export --prior` puts it into a pack."""
    path = desk.workspace.shipping.write_prior(prior_id, output, desk.who, force=force)
    found = desk.workspace.priors.get(prior_id)
    tokenizer = f"{found.tokenizer.name} ({found.tokenizer.sha256[:12]})"
    desk.answer(
        {"file": str(path), **_told(found)}, f"{path}: {found.id}, for the tokenizer of {tokenizer} only."
    )


@verb(prior, "import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--endpoint", default="embedded", show_default=True, help="Whose tokenizer it must belong to.")
def import_prior(desk: Desk, file: Path, endpoint: str) -> None:
    """Bring in a prior from a pack or a logit_bias JSON; one of another tokenizer is refused."""
    from core.packs.pack import MAX_PACK_BYTES

    made = desk.workspace.priors.bring(foreign_file(file, MAX_PACK_BYTES), endpoint, desk.who)
    desk.answer(_told(made), *_lines(made))


def _told(found: Prior) -> dict[str, Any]:
    """As JSON, with the weights, which follow from the counts."""
    value = found.model_dump(mode="json")
    for told, factor in zip(value["factors"], found.factors, strict=True):
        told |= {"q": factor.q, "eta": factor.eta}
    return value


def _lines(found: Prior) -> list[str]:
    used = [f for f in found.factors if f.eta > 0 and f.tokens]
    promoted = sum(t.sign > 0 for f in used for t in f.tokens)
    demoted = sum(t.sign < 0 for f in used for t in f.tokens)
    lines = [
        f"{found.id}: {promoted} promoted and {demoted} demoted tokens for {', '.join(f.domain for f in used)};"
        f" tokenizer of {found.tokenizer.name} ({found.tokenizer.sha256[:12]})."
    ]
    if dropped := [f.domain for f in found.factors if f not in used]:
        lines.append(f"Dropped, as they did not hold on other tasks: {', '.join(dropped)}.")
    if masked := sum(f.masked for f in found.factors):
        lines.append(f"{plural(masked, 'token')} of right answers left out.")
    if found.left_out:
        lines.append(f"{plural(found.left_out, 'group')} not of the split train left out.")
    return lines
