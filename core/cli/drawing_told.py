"""Drawing lessons from a finished run, in lines for a person."""

from __future__ import annotations

from core.cli.desk import plural
from core.workspace.drawing_anew import DrawingPlan, Drawn


def takes(plan: DrawingPlan) -> list[str]:
    """What it takes to have a model draw lessons."""
    most = plan.most
    money = f", ${most.cost_usd:.4f}" if most.cost_usd else ""
    return [
        f"{plural(plan.rollouts, 'summary', 'summaries')}, {plural(plan.groups, 'contrast')} and "
        f"{plural(plan.batches, 'consolidation')} by {plan.model}: at most {plural(most.calls, 'call')}, about "
        f"{most.prompt_tokens + most.completion_tokens:,} tokens{money}. Nothing was done.",
        "Retries and second tries come on top, what is in the cache comes off.",
    ]


def drawn_lines(drawn: Drawn) -> list[str]:
    """What came of drawing lessons."""
    run, made = drawn.run, drawn.made
    see = ": see `winnow review list`" if made.proposed else ""
    lines = [f"{plural(made.proposed, 'proposal')} from {run.id}{see}."]
    if made.calls:
        calls = ", ".join(f"{n:,} {stage}" for stage, n in made.calls.items())
        lines.append(
            f"Calls: {calls}, those that the cache answered included. Sent for {run.id} in all: "
            f"{plural(run.spent.calls, 'call')}, {run.spent.prompt_tokens + run.spent.completion_tokens:,} tokens, "
            f"${run.spent.cost_usd:.4f}."
        )
    if failed := made.not_contrasted:
        group, why = next(iter(failed.items()))
        lines.append(
            f"{plural(len(failed), 'group')} could not be contrasted, the first: {group}: {why} "
            "Again: the same with --retry-failed."
        )
    return lines
