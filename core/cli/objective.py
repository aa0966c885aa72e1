"""`winnow objective`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from core.cli.desk import Desk, plural, table, verb
from core.settings import EMBEDDED

if TYPE_CHECKING:
    from core.workspace.policy import Policy


@verb(None, "objective")
@click.option("--version", "named", help="Of the library, a number or a label; default: the newest.")
@click.option("--endpoint", default=EMBEDDED, show_default=True)
@click.option("--split", type=click.Choice(["train", "trial"]), default="train", show_default=True)
@click.option(
    "--domain", "domains", multiple=True, help="Only tasks of this domain; several times for several."
)
@click.option("--tasks", type=int, default=20, show_default=True, help="At most so many.")
@click.option("--samples", type=int, default=4, show_default=True, help="Replies to each, with and without.")
@click.option("--max-tokens", type=int, default=32, show_default=True, help="Of a reply.")
@click.option("--clip", type=float, default=0.2, show_default=True, help="Clip range of the surrogate.")
@click.option("--seed", type=int, default=0, show_default=True)
def objective(desk: Desk, named: str | None, **what: Any) -> None:
    """Measure how far a version moves the model: importance ratios, clipped surrogate, KL, for each task.

    It needs log-probabilities and a grammar that forces a given text: the embedded model has both. Nothing is learned.
    """
    from core.workspace.policy import PolicyConfig

    number = desk.workspace.store.versions.resolve(named) if named else None
    config = PolicyConfig.read({"version": number, **what}, where="the options")
    found = desk.workspace.policies.measure(config, desk.progress)
    desk.answer(found, *_lines(found))


def _lines(found: Policy) -> list[str]:
    rows = [
        (
            m.task_id,
            m.injected,
            m.drawn,
            _number(m.kl_k1),
            _number(m.kl_k3),
            _number(m.log_ratio),
            _number(m.surrogate),
        )
        for m in found.moves
    ]
    lines = table(rows, ("task", "lessons", "replies", "KL k1", "KL k3", "log ratio", "surrogate"))
    error = f" (standard error {found.kl_k3_se:.3f})" if found.kl_k3_se is not None else ""
    lines += [
        "",
        f"Version {found.config.version} moves {found.model} by a KL of {_number(found.kl_k3)}{error} nats a reply, k3;"
        f" k1 {_number(found.kl_k1)}; {_number(found.kl_token)} nats a token; over {plural(found.measured, 'task')}.",
        f"Clipped surrogate {_number(found.surrogate)} over {plural(found.surrogate_tasks, 'task')} whose replies"
        f" differ in reward; the clip decides {_number(found.clipped)} of the replies.",
    ]
    if found.not_injected:
        lines.append(f"{plural(found.not_injected, 'task')} got no lesson and took no part.")
    lines += [
        f"{plural(n, 'reply', 'replies')} not scored: {reason}." for reason, n in found.unscored.items()
    ]
    return [*lines, found.method]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
