"""`winnow runs`: what was sampled, down to the exact answers."""

from __future__ import annotations

from typing import Any, get_args

import click

from core.cli.desk import Desk, one_line, plain, plural, table, verb, visible
from core.cli.run import report
from core.job import ENDED
from core.record import canonical_json
from core.review import outdated_of
from core.rollout import UNGRADED, GroupStatus, Run
from core.store.recorded import RecordedAttempt
from core.workspace.gate_story import gate_story

OF_RECORDED = ("reward",)
"""Settings of a run that hold for recorded rollouts, too."""
OUTDATED = 10
"""Proposals that are named."""


@click.group()
def runs() -> None:
    """Runs, groups and rollouts."""


@verb(runs, "list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
def list_runs(desk: Desk, limit: int) -> None:
    """List runs, the newest first."""
    found = desk.workspace.store.runs.newest(limit)
    rows = [
        (
            r.id,
            r.kind,
            _state(desk, r),
            r.model,
            r.tally.total,
            r.tally.informative,
            r.extraction.proposed,
            r.created_at,
        )
        for r in found
    ]
    lines = table(rows, ("run", "kind", "status", "model", "groups", "informative", "proposed", "created"))
    desk.answer([told(r) for r in found], *(lines if found else ["No runs yet: winnow run, or winnow demo."]))


@verb(runs, "show")
@click.argument("run_id")
def show(desk: Desk, run_id: str) -> None:
    """Show one run: what became of its groups, what it took, what it proposed."""
    run = desk.workspace.store.runs.get(run_id)
    note = [f"Note: {run.note}"] if run.note else []
    gate = gate_story(desk.workspace.store, run.id)
    lines = [f"{run.id} is {_state(desk, run)}.", *report(run, gate, in_full=True), *_batches(desk, run)]
    changed = outdated_of(desk.workspace.store, run.id)
    lines += [*note, *_outdated(run, changed), *run.extraction.notes]
    desk.answer(told(run) | {"gate_story": plain(gate), "outdated": changed}, *lines)


@verb(runs, "groups")
@click.argument("run_id")
@click.option("--status", type=click.Choice(get_args(GroupStatus)), default=None)
@click.option("--domain", default="")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--offset", type=click.IntRange(0, 10**12), default=0)
def groups(desk: Desk, run_id: str, status: str | None, domain: str, limit: int, offset: int) -> None:
    """List the groups of a run."""
    desk.workspace.store.runs.get(run_id)
    found, total = desk.workspace.store.groups.page(
        run_id, status=status or "", domain=domain, limit=limit, offset=offset
    )
    rows = [
        (
            g.id,
            g.domain,
            g.status,
            g.reason or "-",
            _number(g.mean),
            _number(g.spread),
            f"{g.scored}/{g.size}",
            g.question,
        )
        for g in found
    ]
    lines = table(rows, ("group", "domain", "status", "why", "mean", "spread", "scored", "question"))
    desk.answer({"total": total, "groups": found}, *lines, f"{len(found):,} of {total:,}")


@verb(runs, "group")
@click.argument("group_id")
def group(desk: Desk, group_id: str) -> None:
    """Show one group: its task, and each rollout's answer, reward and advantage."""
    found = desk.workspace.store.groups.get(group_id)
    task = desk.workspace.store.tasks.find(found.task_id)
    rows = [
        (r.id, _number(r.reward), _number(r.advantage, sign=True), r.error or r.trajectory.answer)
        for r in found.rollouts
    ]
    lines = [
        f"{found.id} ({found.status}{': ' + found.reason if found.reason else ''})",
        f"Task {found.task_id}: {one_line(task.question if task else '', 300)}",
        f"Right answer: {one_line(str(task.answer), 100) if task else '-'}",
        *table(rows, ("rollout", "reward", "advantage", "answer")),
    ]
    if found.reason == UNGRADED:
        lines.append(
            "To grade them, import the same files again with --score NAME or --rewards FILE, "
            f"or let a verifier: winnow rescore {found.run_id} --verifier NAME=KIND"
        )
    desk.answer(found, *lines)


@verb(runs, "rollout")
@click.argument("rollout_id")
def rollout(desk: Desk, rollout_id: str) -> None:
    """Show one rollout, whole: messages, steps, scores."""
    found = desk.workspace.store.groups.rollout(rollout_id)
    lines = [f"{found.id}: reward {_number(found.reward)}, advantage {_number(found.advantage, sign=True)}"]
    for message in found.trajectory.messages:
        lines += [f"--- {message.role}{' ' + message.name if message.name else ''}", visible(message.content)]
    for i, step in enumerate(found.trajectory.steps):
        took = "" if step.duration_s is None else f" in {step.duration_s:.2f} s"
        tried = f", {plural(step.retries, 'retry', 'retries')}" if step.retries else ""
        lines += [
            f"step {i + 1}: {step.told}{took}{tried}{': ' + one_line(step.error) if step.error else ''}",
            f"  with {one_line(canonical_json(step.parameters), 300)}",
            *([f"  gave {one_line(step.output, 300)}"] if step.output else []),
        ]
    for name, score in found.scores.items():
        parts = ", ".join(f"{k} {v:g}" for k, v in score.parts.items())
        lines.append(
            f"score {name}: {_number(score.value)} {f'({parts}) ' if parts else ''}{one_line(score.reason)}"
        )
    if found.components:
        parts = ", ".join(f"{name} {_number(value)}" for name, value in found.components.items())
        lines.append(f"parts of the reward: {parts}")
    if found.accepted is not None:
        lines.append("accepted" if found.accepted else "rejected")
    lines += [f"summary: {one_line(found.summary, 600)}"] if found.summary else []
    lines += [f"semantic advantage: {one_line(found.semantic, 600)}"] if found.semantic else []
    if found.error:
        lines.append(f"broke off: {found.error}")
    desk.answer(found, *lines, *_origin(desk.workspace.store.recorded.get(rollout_id)))


def _origin(recorded: RecordedAttempt | None) -> list[str]:
    """Where a rollout that was recorded elsewhere stood, and all scores that it had there."""
    if recorded is None:
        return []
    lines = [f"came from: {one_line(recorded.source)}, {one_line(recorded.place)}"]
    if recorded.scores:
        scores = ", ".join(f"{one_line(name)} {_number(value)}" for name, value in recorded.scores.items())
        lines.append(f"scores of the file: {scores}")
    return lines


def told(run: Run) -> dict[str, Any]:
    """A run as JSON; of one that was recorded elsewhere only those settings that it was taken in with.

    It was sampled from no endpoint of ours, at a temperature and with limits that nobody told.
    """
    answer: dict[str, Any] = plain(run)
    if run.kind == "recorded":
        answer["config"] = {name: answer["config"][name] for name in OF_RECORDED}
    return answer


def _state(desk: Desk, run: Run) -> str:
    """The status of a run and of the work on it; "interrupted" where nobody works on one that says it is running."""
    if run.status in ("done", "failed", "cancelled"):
        return run.status
    job = desk.workspace.jobs.of_run(run.id)
    if run.status == "review":
        return "review (its gate waits for you)"
    if job and job.state not in ENDED:
        return f"{job.state} ({job.id})"
    if run.status == "running" and not desk.workspace.learning.busy(run.id):
        goes_on = "the same import" if run.kind == "recorded" else f"winnow run --resume {run.id}"
        return f"interrupted ({goes_on} goes on)"
    return run.status


def _batches(desk: Desk, run: Run) -> list[str]:
    """A line for each batch, where a run has several epochs or a gate."""
    if run.config.epochs == 1 and run.config.gate == "none":
        return []
    lines = []
    for batch in desk.workspace.store.runs.batches(run.id):
        given = "not begun" if batch.library_version is None else f"under version {batch.library_version}"
        said = f", {batch.extraction.proposed} proposed" if batch.extraction else ""
        published = f", published as version {batch.published_in}" if batch.published_in is not None else ""
        lines.append(f"  epoch {batch.epoch + 1}, batch {batch.batch + 1}: {given}{said}{published}")
    return lines


def _outdated(run: Run, proposal_ids: list[str]) -> list[str]:
    """Which of its proposals were counted under other rewards."""
    if not proposal_ids:
        return []
    shown = ", ".join(proposal_ids[:OUTDATED])
    more = f" and {len(proposal_ids) - OUTDATED} more" if len(proposal_ids) > OUTDATED else ""
    drawn = "it was drawn" if len(proposal_ids) == 1 else "they were drawn"
    return [
        f"The rewards behind {len(proposal_ids)} of its proposals changed after {drawn}: {shown}{more}. "
        f"`winnow rollouts propose {run.id}` draws anew."
    ]


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"
