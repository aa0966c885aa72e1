"""All that is known of an experience, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from core.cli.desk import one_line, plural, table, visible
from core.experience import Merge, Proposal, text_of
from core.review import way_out
from core.rollout import Trajectory
from core.workspace.dossier import Brought, Dossier, Span
from core.workspace.provenance import Decision, OfRollout, Origin

TASKS_SHOWN = 8
EARNINGS_SHOWN = 10
"""The newest; --json has all."""


def dossier_lines(found: Dossier) -> list[str]:
    """The experience, how it stands, its texts over the versions, and each proposal with what stands behind it."""
    e = found.experience
    merged = f" into {e.merged_into}" if e.merged_into else ""
    lines = [
        f"{e.id} ({e.status}{merged}, {e.kind}, {e.domain})",
        visible(e.text),
        f"confidence {e.confidence:.2f}, {plural(e.uses, 'use')}, {plural(e.wins, 'win')}; "
        f"learned on {e.learned_on or 'no model'}",
        *_standing(found),
        *_earned(found),
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


def _standing(found: Dossier) -> Iterator[str]:
    p = found.pending
    if found.earned.pending:
        yield (
            f"pending, with the next version: confidence {p.confidence:.2f}, {plural(p.uses, 'use')}, "
            f"{plural(p.wins, 'win')}"
        )
    yield f"live in {', '.join(map(_span, found.live_in)) or 'no version'}"
    if tasks := found.in_sample_tasks:
        more = f" and {len(tasks) - TASKS_SHOWN} more" if len(tasks) > TASKS_SHOWN else ""
        yield (
            f"in-sample on {plural(len(tasks), 'task')} that it was learned from (nothing is proved there): "
            f"{', '.join(tasks[:TASKS_SHOWN])}{more}"
        )
    for brought in found.imported:
        yield _brought(brought)
    for proposal in found.waiting:
        text = text_of(proposal.effective)
        yield f"waiting: {proposal.id} {proposal.operation.op} ({proposal.status})" + (
            f": {one_line(text)}" if text is not None else ""
        )


def _span(span: Span) -> str:
    end = span.to_version
    if end is None:
        told = f"version {span.from_version} and all since"
    elif end == span.from_version + 1:
        told = f"version {span.from_version}"
    else:
        told = f"versions {span.from_version} to {end - 1}"
    return f"{told} [{', '.join(span.labels)}]" if span.labels else told


def _brought(brought: Brought) -> str:
    whose = f" {one_line(brought.name)!r}" if brought.name else ""
    version = "" if brought.version is None else f", version {brought.version}"
    claimed = ", ".join(f"{k} {v}" for k, v in brought.claimed.items() if v not in (None, "", 0))
    verb = "said by" if brought.joined else "imported from"
    return one_line(
        f"{verb} {brought.source}{whose} ({brought.form}{version}, sha256 {brought.sha256[:12]}), there "
        f"{brought.their_id or brought.place}, by {brought.actor} at {brought.imported_at}"
        + (f"; claimed there: {claimed}" if claimed else ""),
        500,
    )


def _earned(found: Dossier) -> Iterator[str]:
    earned = found.earned
    if not earned.uses:
        return
    yield "--- earned"
    yield (
        f"{plural(earned.uses, 'use')}: better in {earned.wins}, worse in {earned.losses}, undecided in "
        f"{earned.undecided}; {plural(earned.followers, 'rollout')} followed it, {earned.others:,} did not"
    )
    if earned.in_sample:
        yield f"{earned.in_sample} of them in-sample: on tasks that it was learned from, which proves nothing"
    outcomes = {True: "better", False: "worse", None: "undecided"}
    used = [e for e in found.earnings if e.followers]
    yield from table(
        [
            (
                e.source,
                outcomes[e.better],
                e.followers,
                e.others,
                "yes" if e.in_sample else "no",
                "pending" if e.folded_in is None else f"version {e.folded_in}",
            )
            for e in used[-EARNINGS_SHOWN:]
        ],
        ("source", "outcome", "followed", "did not", "in-sample", "counted in"),
    )
    if len(used) > EARNINGS_SHOWN:
        yield f"and {len(used) - EARNINGS_SHOWN:,} before these"


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
    if origin.outdated:
        yield f"OUTDATED: {origin.outdated} {way_out(p)}".rstrip()
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
        "correction": "a person's correction of a rollout",
        "pack": "an imported pack",
        "llm": "a model",
        "evidence": "counted evidence",
        "audit": "an audit",
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
        yield f"step {i}: {step.told}, with {visible(str(step.parameters))}"
        if step.output or step.error:
            yield f"  {visible(step.error or step.output)}"
    yield f"answer: {visible(trajectory.answer)}"


def _number(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"
