"""Drawing lessons from a finished run, in lines for a person."""

from __future__ import annotations

from core.cli.desk import plural
from core.rollout import Usage
from core.settings import free
from core.workspace.drawing_anew import DrawingPlan, Drawn


def takes(plan: DrawingPlan) -> list[str]:
    """What it takes to have a model draw lessons."""
    most = plan.most
    return [
        f"{plural(plan.rollouts, 'summary', 'summaries')}, {plural(plan.groups, 'contrast')} and "
        f"{plural(plan.batches, 'consolidation')} by {plan.model}: at most {plural(most.calls, 'call')}, about "
        f"{_tokens(most):,} tokens, {most.dollars(free=free(plan.endpoint))}. Nothing was done.",
        "Retries and second tries come on top, what is in the cache comes off.",
    ]


def drawn_lines(drawn: Drawn) -> list[str]:
    """What came of drawing lessons."""
    run, made = drawn.run, drawn.made
    see = ": see `winnow review list`" if made.proposed else ""
    lines = [f"{plural(made.proposed, 'proposal')} from {run.id}{see}."]
    if made.calls:
        calls = ", ".join(f"{n:,} {stage}" for stage, n in made.calls.items())
        lines.append(f"Calls this time: {calls}, those that the cache answered included.")
    if run.spent.calls:
        lines.append(
            f"In all for {run.id}: {run.spent.calls:,} sent, {_tokens(run.spent):,} tokens, {run.spent.dollars()}."
        )
    if failed := made.not_contrasted:
        group, why = next(iter(failed.items()))
        lines.append(
            f"{plural(len(failed), 'group')} could not be contrasted, the first: {group}: {why} "
            "Again: the same with --retry-failed."
        )
    return lines


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
