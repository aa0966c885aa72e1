"""What an experience came from, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from core.cli.desk import one_line, plural, table, visible
from core.experience import Merge, Proposal
from core.rollout import Trajectory
from core.workspace.provenance import Decision, OfRollout, Origin, Provenance


def provenance_lines(found: Provenance) -> list[str]:
    """The experience, its texts over the versions, and each proposal with what stands behind it."""
    e = found.experience
    merged = f" into {e.merged_into}" if e.merged_into else ""
    lines = [
        f"{e.id} ({e.status}{merged}, {e.kind}, {e.domain})",
        visible(e.text),
        f"confidence {e.confidence:.2f}, {plural(e.uses, 'use')}, {plural(e.wins, 'win')}; "
        f"learned on {e.learned_on or 'no model'}",
        "--- texts",
    ]
    for said in found.history:
        until = f"to before version {said.to_version}" if said.to_version else "until now"
        lines += [
            f"from version {said.from_version} {until} ({said.state.status}), "
            f"by {said.author}: {one_line(said.message)}",
            f"  {visible(said.state.text)}",
        ]
    for origin in found.origins:
        lines += _origin(origin)
    return lines


def _origin(origin: Origin) -> Iterator[str]:
    p = origin.proposal
    yield f"--- {p.id}: {p.operation.op} by {_who(p)}"
    if isinstance(p.operation, Merge):
        yield f"merged from: {', '.join(p.operation.experience_ids)}"
    if p.rationale:
        yield f"rationale: {visible(p.rationale)}"
    if p.evidence.sentence or p.evidence.findings:
        yield f"evidence: {visible(p.evidence.sentence)}"
    for f in p.evidence.findings:
        yield (
            f"  {f.label}: winners {f.winners_with}/{f.winners}, losers {f.losers_with}/{f.losers}, "
            f"p {f.p:.2g}, corrected over {plural(p.evidence.features_tried, 'feature')} {f.p_corrected:.2g}"
        )
    if origin.run:
        run = origin.run
        where = f" at {run.endpoint}" if run.endpoint else ""
        yield f"run {run.id} ({run.kind}, {run.status}): {run.model or 'no model'}{where}"
    if origin.groups:
        groups = [
            (g.id, _number(g.mean), _number(g.spread), f"{g.scored}/{g.size}", f"{g.task_id}: {g.question}")
            for g in origin.groups
        ]
        yield from table(groups, ("group", "mean", "spread", "scored", "task"))
        if more := len(p.evidence.group_ids) - len(origin.groups):
            yield f"and {plural(more, 'more group')}"
    if origin.rollouts:
        rows = [(r.id, _number(r.reward), _number(r.advantage, sign=True), _gist(r)) for r in origin.rollouts]
        yield from table(rows, ("rollout", "reward", "advantage", "what it did"))
        if more := len(p.evidence.rollout_ids) - len(origin.rollouts):
            yield f"and {plural(more, 'more rollout')}"
    if origin.gone:
        yield f"no longer kept: {', '.join(origin.gone)}"
    for decision in origin.decisions:
        yield _decision(decision)
    for rollout in origin.rollouts:
        if rollout.trajectory:
            yield f"--- {rollout.id}"
            yield from _steps(rollout.trajectory)


def _who(proposal: Proposal) -> str:
    return {
        "person": "a person",
        "pack": "an imported pack",
        "llm": "a model",
        "evidence": "counted evidence",
    }[proposal.extractor]


def _gist(rollout: OfRollout) -> str:
    steps = " > ".join(rollout.steps)
    end = f"broke off: {rollout.error}" if rollout.error else rollout.answer
    return f"{steps} > {end}" if steps else end


def _decision(decision: Decision) -> str:
    reason = f": {one_line(decision.reason, 300)}" if decision.reason else ""
    text = f", text: {visible(decision.text)}" if decision.text is not None else ""
    return f"{decision.at} {decision.kind} by {decision.actor}{reason}{text}"


def _steps(trajectory: Trajectory) -> Iterator[str]:
    for message in trajectory.messages:
        yield f"{message.role}{' ' + message.name if message.name else ''}: {visible(message.content)}"
    for i, step in enumerate(trajectory.steps, start=1):
        outcome = "succeeded" if step.success else "failed" if step.success is False else "no result"
        yield f"step {i}: {step.tool} {visible(str(step.parameters))} {outcome}"
        if step.output or step.error:
            yield f"  {visible(step.error or step.output)}"
    yield f"answer: {visible(trajectory.answer)}"


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"
