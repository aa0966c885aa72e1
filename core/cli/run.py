"""`winnow run`."""

from __future__ import annotations

import click

from core.cli.desk import Desk, plural, verb
from core.errors import InputError
from core.rollout import SPLITS, Run
from core.settings import RunConfig
from core.workspace.learning import CAPS, Plan


@verb(None, "run")
@click.option("--endpoint", help="Who is asked; default: the endpoint with the role 'rollout'.")
@click.option(
    "--extraction-endpoint", help="Who draws lessons beside the evidence extractor; default: the role."
)
@click.option("--group-size", "-g", type=int, default=8, show_default=True, help="Rollouts of each task.")
@click.option("--split", type=click.Choice(SPLITS), default="train", show_default=True)
@click.option("--domain", "domains", multiple=True, help="Only tasks of this domain (may be repeated).")
@click.option("--limit", type=int, help="At most so many tasks of each domain.")
@click.option("--temperature", type=float, default=0.7, show_default=True)
@click.option("--top-p", type=float, default=0.95, show_default=True)
@click.option("--max-tokens", type=int, default=64, show_default=True, help="Tokens of one reply.")
@click.option("--stop", multiple=True, help="Stop a reply at this text (may be repeated).")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--batch-size", type=int, default=40, show_default=True, help="Tasks of one batch.")
@click.option("--library-version", type=int, help="Inject this version; default: the newest.")
@click.option("--max-calls", type=int, help="Cap on requests.")
@click.option("--max-tokens-total", type=int, help="Cap on tokens.")
@click.option("--max-cost-usd", type=float, help="Cap on money.")
@click.option("--resume", metavar="RUN", help="Go on with this run, whatever it was started with.")
@click.option("--retry-failed", is_flag=True, help="Make up for what failed in a run that is done.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def run(desk: Desk, resume: str | None, retry_failed: bool, dry_run: bool, **settings: object) -> None:
    """Sample G rollouts of each task, score them, and propose lessons.

    The same command again goes on where it stopped, whatever stopped it, and pays for nothing twice; once the run
    is done it does nothing. Another seed, or a newer library version, is another run. With --resume only the caps
    (--max-calls, --max-tokens-total, --max-cost-usd) may be given besides; they take the place of the run's own.
    """
    learning = desk.workspace.learning
    if resume:
        found = desk.workspace.store.runs.get(resume)
        config = _with_caps(found.config, settings)
        if dry_run:
            waiting = found.tally.waiting
            desk.answer(
                found,
                f"{found.id} is {found.status}: {plural(waiting, 'group')} to sample. Nothing was done.",
            )
            return
    else:
        roles = desk.workspace.models.roles()
        settings["endpoint"] = settings["endpoint"] or roles["rollout"]
        settings["extraction_endpoint"] = settings["extraction_endpoint"] or roles["extraction"]
        config = RunConfig.read(settings, where="run")
        if dry_run:
            _say_plan(desk, learning.plan(config))
            return
        found = learning.start(config, desk.who)
    if retry_failed:
        learning.retry(found.id, desk.who)
    elif found.status == "done":
        desk.answer(found, f"{found.id} is done already.", *report(found), set_aside=_incomplete(found))
        return
    done = learning.work(found.id, desk.who, desk.progress, config)
    desk.answer(done, *report(done), set_aside=_incomplete(done))


def _with_caps(config: RunConfig, settings: dict[str, object]) -> RunConfig:
    source = click.get_current_context().get_parameter_source
    given = {n: v for n, v in settings.items() if source(n) is click.core.ParameterSource.COMMANDLINE}
    if other := sorted(set(given) - CAPS):
        raise InputError(f"--{other[0].replace('_', '-')} cannot be changed by --resume; leave it out.")
    return RunConfig.read({**config.model_dump(), **given}, where="run")


def _say_plan(desk: Desk, plan: Plan) -> None:
    state = f"goes on with {plan.resumes}" if plan.resumes else "is a new run"
    line = (
        f"{plural(len(plan.tasks), 'task')} x {plan.config.group_size} rollouts with {plan.model} under version "
        f"{plan.library_version} (lessons for {plan.with_lessons} of them): at most {plural(plan.calls, 'call')} for "
        f"rollouts; it {state}. Nothing was done."
    )
    desk.answer({**plan.model_dump(mode="json"), "tasks": [t.id for t in plan.tasks]}, line)


def _incomplete(run: Run) -> bool:
    return bool(run.tally.failed or run.extraction.not_contrasted)


def report(run: Run) -> list[str]:
    """What became of a run, in a few lines that add up."""
    tally, made = run.tally, run.extraction
    saved = max(0, run.usage.calls - run.spent.calls)
    why = "; ".join(f"{n} {reason}" for reason, n in tally.reasons.items())
    taught = f" ({run.with_lessons} of them with lessons)" if run.library_version else ""
    lines = [
        f"{run.id}: {plural(tally.total, 'group')} with {run.model} under version {run.library_version}{taught}: "
        f"{tally.informative} informative, {tally.uninformative} uninformative, {tally.failed} failed"
        + (f", {tally.waiting} waiting" if tally.waiting else "")
        + (f" ({why})" if why else "")
        + ".",
        f"Sent: {plural(run.spent.calls, 'call')}, {run.spent.prompt_tokens:,} prompt and "
        f"{run.spent.completion_tokens:,} completion tokens, ${run.spent.cost_usd:.4f}"
        + (f"; {plural(saved, 'call')} of its rollouts came from the cache." if saved else "."),
    ]
    if run.status == "done" and run.config.split == "train":
        lines.append(
            f"{plural(made.suggested, 'operation')} suggested: {made.proposed} proposed, {made.joined} joined, "
            f"{made.superseded} superseded, {made.quarantined} quarantined."
            + (" See: winnow review list" if made.proposed else f" Why: winnow runs show {run.id}")
        )
    return lines
