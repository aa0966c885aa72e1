"""`winnow run`."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from core.cli.desk import FAULT, UNFINISHED, Desk, one_line, plural, verb
from core.cli.jobs import how_far
from core.cli.run_options import read_config, refuse_but_caps, run_options
from core.errors import InputError, StoppedError, WinnowError
from core.job import Job
from core.jobs import FAULT as FAULT_SENTENCE
from core.jobs import Came
from core.rollout import NO_PRICE, Run
from core.settings import RunConfig
from core.workspace.gate_story import GateStory, gate_story
from core.workspace.judgeable import said_of
from core.workspace.planning import Plan


@verb(None, "run")
@run_options
@click.option("--resume", metavar="RUN", help="Go on with this run, whatever it was started with.")
@click.option("--retry-failed", is_flag=True, help="Make up for what failed in a run that is done.")
@click.option("--detach", is_flag=True, help="Leave it to a worker in the background.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--rehearse", is_flag=True, help="Try one task, and show what comes of it; no run is written down."
)
@click.option(
    "--task", "task_id", default="", metavar="ID", help="With --rehearse: this task; default: the first."
)
def run(
    desk: Desk,
    file: Path | None,
    resume: str | None,
    retry_failed: bool,
    detach: bool,
    dry_run: bool,
    rehearse: bool,
    task_id: str,
    **options: object,
) -> None:
    """Sample G rollouts of each task, score them, and propose lessons.

    The same command again goes on where it stopped, whatever stopped it, and pays for nothing twice; once the run
    is done it does nothing. Another seed, or a newer library version, is another run. With --resume only the caps
    (--max-calls, --max-tokens-total, --max-cost-usd) may be given besides; they take the place of the run's own.

    Where a worker runs already it does the work, and this command shows how far it is; Ctrl-C then only stops looking.
    """
    workspace = desk.workspace
    caps: RunConfig | None
    if rehearse and (resume or retry_failed or detach or dry_run):
        raise InputError("--rehearse stands alone: it tries one task and writes no run down.")
    if task_id and not rehearse:
        raise InputError("--task belongs to --rehearse.")
    if resume:
        found = workspace.store.runs.get(resume)
        caps = _other_caps(found.config, file, options)
        if dry_run:
            waiting = plural(found.tally.waiting, "group")
            desk.answer(found, f"{found.id} is {found.status}: {waiting} to sample. Nothing was done.")
            return
    else:
        caps = read_config(file, options, workspace.models.roles(), workspace.store.versions.resolve)
        if dry_run:
            _say_plan(desk, workspace.learning.plan(caps))
            return
        if rehearse:
            _rehearse(desk, caps, task_id)
            return
        found = workspace.learning.start(caps, desk.who)
        if found.status != "done" and (note := said_of(caps, workspace.store)):
            click.echo(note, err=True)
    if retry_failed:
        workspace.learning.retry(found.id, desk.who)
    elif found.status == "done":
        lines = report(found, gate_story(workspace.store, found.id))
        desk.answer(found, f"{found.id} is done already.", *lines, set_aside=_incomplete(found))
        return
    job = workspace.jobs.enqueue(found.id, desk.who, caps)
    if detach:
        workspace.ensure_worker()
        desk.answer(job, f"{job.id} ({job.subject}) is {job.state}. See: winnow jobs show {job.id}")
        return
    if came := see_through(desk, job):
        _tell(desk, came)


def _rehearse(desk: Desk, config: RunConfig, task_id: str) -> None:
    from core.workspace.rehearsing import rehearse

    found = rehearse(desk.workspace.store, desk.workspace.models, config, task_id)
    group = found.group
    lines = [
        f"{r.replicate}: {'broke off: ' + r.error if r.error else f'reward {r.reward}'}: "
        f"{one_line(r.trajectory.answer)}"
        for r in group.rollouts
    ]
    desk.answer(
        found,
        f"{found.task.id}: {one_line(found.task.question)}",
        *lines,
        f"The group is {group.status}{f' ({group.reason})' if group.reason else ''}. Sent: "
        f"{plural(found.sent.calls, 'call')}, {found.sent.dollars(free=config.free)}; nothing was stored but the "
        "replies.",
    )


def see_through(desk: Desk, job: Job) -> Came | None:
    """Work on a job here, or follow whoever does, until nothing more happens to it by itself.

    Gives what came of it; None where whoever looked on stopped looking.
    """
    from core.worker import Leaving, attend

    leaving = Leaving()
    follows = False

    def following(now: Job) -> None:
        nonlocal follows
        follows = True
        where = f", {how_far(now)}" if how_far(now) else ""
        click.echo(f"A worker runs already; {now.id} is {now.state}{where}.", err=True)

    try:
        with leaving.on(signal.SIGTERM):
            came = attend(desk.workspace, job, progress=desk.progress, leaving=leaving, following=following)
    except KeyboardInterrupt:
        if not follows:
            raise
        click.echo(
            f"\n{job.id} goes on without you: winnow jobs show {job.id} tells how far it is, winnow jobs pause "
            f"{job.id} or winnow jobs cancel {job.id} stops it.",
            err=True,
        )
        desk.code = UNFINISHED
        return None
    except StoppedError as e:
        desk.refuse(e)
    desk.workspace.ensure_worker()  # for what others asked for meanwhile
    return came


def failed(desk: Desk, came: Came) -> bool:
    """Whether a job broke off by a fault of ours, which is told; what else went wrong is raised."""
    if came.error and not isinstance(came.error, StoppedError):
        raise came.error
    if came.job.state == "failed":  # in another process
        if came.job.error.startswith(FAULT_SENTENCE):
            desk.answer({"error": came.job.error}, came.job.error)
            desk.code = FAULT
            return True
        raise InputError(came.job.error)
    return False


def _tell(desk: Desk, came: Came) -> None:
    job = came.job
    if failed(desk, came):
        return
    now = desk.workspace.store.runs.get(job.subject)
    if job.state == "done" or now.status == "review":
        desk.answer(now, *report(now, gate_story(desk.workspace.store, now.id)), set_aside=_incomplete(now))
        desk.code = UNFINISHED if now.status == "review" else desk.code
        return
    why = f" {job.error}" if job.error else ""
    desk.refuse(WinnowError(f"{job.id} ({job.subject}) is {job.state}.{why}"))


def _other_caps(config: RunConfig, file: Path | None, options: dict[str, object]) -> RunConfig | None:
    """The configuration of a run with other caps; None where none were given."""
    wanted = refuse_but_caps(file, options)
    return RunConfig.read({**config.model_dump(), **wanted}, where="run") if wanted else None


def _say_plan(desk: Desk, plan: Plan) -> None:
    config = plan.config
    state = f"goes on with {plan.resumes}" if plan.resumes else "is a new run"
    epochs = f", {plural(config.epochs, 'epoch')}" if config.epochs > 1 else ""
    line = (
        f"{plural(len(plan.tasks), 'task')} x {config.group_size} rollouts{epochs} with {plan.model} under version "
        f"{plan.library_version} (lessons for {plan.with_lessons} of them): at most {plural(plan.calls, 'call')} for "
        f"rollouts; it {state}. Nothing was done."
    )
    least, most = plan.estimate.total.low, plan.estimate.total.high
    priced = most.priced(free=config.free)
    cost = f"${least.cost_usd:,.4f} to ${most.cost_usd:,.4f}" if priced else NO_PRICE
    in_all = (
        f"In all {least.calls:,} to {most.calls:,} calls, {least.prompt_tokens + least.completion_tokens:,} to "
        f"{most.prompt_tokens + most.completion_tokens:,} tokens, {cost}; "
        "retries come on top, what is in the cache comes off."
    )
    desk.answer(
        {**plan.model_dump(mode="json"), "tasks": [t.id for t in plan.tasks]}, line, in_all, *plan.notes
    )


def _incomplete(run: Run) -> bool:
    return bool(run.tally.failed or run.extraction.not_contrasted)


def report(run: Run, gate: GateStory, *, in_full: bool = False) -> list[str]:
    """What became of a run, in a few lines that add up; `in_full` where the notes on its proposals follow."""
    tally, made = run.tally, run.extraction
    why = "; ".join(f"{n} {reason}" for reason, n in tally.reasons.items())
    taught = f" ({run.with_lessons} of them with lessons)" if run.with_lessons or run.library_version else ""
    by = f" with {run.model}" if run.model else ""
    lines = [
        f"{run.id}: {plural(tally.total, 'group')}{by} under {_versions(run)}{taught}: "
        f"{tally.informative} informative, {tally.uninformative} uninformative, {tally.failed} failed"
        + (f", {tally.waiting} waiting" if tally.waiting else "")
        + (f" ({why})" if why else "")
        + ".",
        *_untaught(run),
        *_shape(run.config),
        _took(run),
    ]
    if made.suggested or (run.status == "done" and run.config.split == "train"):
        lines.append(
            f"{plural(made.suggested, 'operation')} suggested: {made.proposed} proposed, {made.joined} joined, "
            f"{made.superseded} superseded, {made.quarantined} set aside."
            + ("" if made.proposed or in_full else f" Why: winnow runs show {run.id}")
        )
    lines += gate.told
    if gate.waiting:
        lines.append(
            f"{plural(gate.waiting, 'proposal waits', 'proposals wait')} for a person: winnow review list"
        )
    if run.status == "review":
        lines.append(
            "Its gate waits for you: decide on the proposals (winnow review list), publish them (winnow publish), "
            f"then go on: winnow run --resume {run.id}"
        )
    return lines


def _took(run: Run) -> str:
    """What was sent for a run; of recorded rollouts what they took where they were recorded."""
    recorded = run.kind == "recorded"
    took = run.usage if recorded else run.spent
    cost = "no cost" if recorded and not took.priced() else took.dollars(free=run.config.free)
    saved = 0 if recorded else max(0, run.usage.calls - run.spent.calls)
    return (
        f"{'Recorded' if recorded else 'Sent'}: {plural(took.calls, 'call')}, {took.prompt_tokens:,} prompt and "
        f"{took.completion_tokens:,} completion tokens, {cost}"
        + (f"; {plural(saved, 'call')} of its rollouts came from the cache." if saved else ".")
        + (f" {sent_to_draw(run)}" if recorded and run.spent.calls else "")
    )


def sent_to_draw(run: Run) -> str:
    """What was really sent for recorded rollouts: to a model that drew lessons from them."""
    sent = run.spent
    return (
        f"Sent to draw lessons: {plural(sent.calls, 'call')}, {sent.prompt_tokens:,} prompt and "
        f"{sent.completion_tokens:,} completion tokens, {sent.dollars()}."
    )


def _versions(run: Run) -> str:
    """The versions that its rollouts were given: with a gate each batch has the newest one."""
    first, last = run.library_version, max((run.library_version, *run.published))
    return f"versions {first} to {last}" if last > first else f"version {first}"


def _untaught(run: Run) -> list[str]:
    """Which informative groups a model could not contrast: informative = learned from + these."""
    failed = run.extraction.not_contrasted
    if not failed:
        return []
    group, why = next(iter(failed.items()))
    again = (
        f"winnow rollouts propose {run.id} --extraction-endpoint NAME --retry-failed"
        if run.kind == "recorded"
        else f"winnow run --resume {run.id} --retry-failed"
    )
    return [
        f"{run.tally.informative - len(failed)} of them were learned from; {plural(len(failed), 'group')} could not be "
        f"contrasted, the first: {group}: {why} Again: {again}"
    ]


def _shape(config: RunConfig) -> list[str]:
    """What is not as it is by default, in one line."""
    parts = []
    if config.epochs > 1 or config.gate != "none":
        gate = {"none": "no gate", "review": "a review between batches", "auto": "published between batches"}
        gate["trial"] = "tried on trial tasks between batches"
        parts.append(
            f"{plural(config.epochs, 'epoch')} of batches of {config.batch_size}, {gate[config.gate]}"
        )
    if config.reward.preset != "verified":
        weights = ", ".join(f"{w:g} {name}" for name, w in config.reward.by_component.items())
        parts.append(f"reward {config.reward.preset} ({weights})")
    if config.agent:
        parts.append(f"agent with {', '.join(config.agent.tools) or 'no tools'}")
    if config.resample:
        parts.append(
            f"uninformative groups sampled anew at {config.resample.temperature:g}, at most "
            f"{plural(config.resample.attempts, 'time')}"
        )
    return [f"{'; '.join(parts)[:1].upper()}{'; '.join(parts)[1:]}."] if parts else []
