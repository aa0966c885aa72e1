"""Words and tones for what the core names by a code, in one place."""

from __future__ import annotations

from core.experience import Add, Delete, Merge, Modify, Proposal
from core.rollout import GroupRow, Rollout, Run
from pages.parts.frame import chip
from pages.parts.safe import Markup

GROUP = {
    "informative": ("informative", "accent"),
    "uninformative": ("uninformative", "quiet"),
    "failed": ("failed", "bad"),
    "waiting": ("waiting", ""),
}
PROPOSAL = {
    "proposed": ("waiting", "accent"),
    "deferred": ("deferred", ""),
    "approved": ("staged", "good"),
    "rejected": ("rejected", "bad"),
    "published": ("published", "good"),
    "superseded": ("superseded", "quiet"),
    "quarantined": ("quarantined", "bad"),
    "stale": ("stale", "bad"),
}
KIND = {
    "strategy": "strategy",
    "tool_selection": "tool selection",
    "failure_pattern": "failure pattern",
    "convention": "convention",
}
FORM = {
    "pack": "Experience pack",
    "prompt": "System prompt",
    "agents-md": "AGENTS.md",
    "skill": "SKILL.md",
    "csv": "CSV",
    "json": "JSON",
}
EXTRACTOR = {
    "evidence": "counted evidence, no model",
    "llm": "a model's reading of the group",
    "person": "a person",
    "pack": "an imported pack",
}


def plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def number(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """A number for reading; "none" where there is none, which is not 0."""
    if value is None:
        return "none"
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def money(usd: float) -> str:
    return f"${usd:.4f}" if 0 < usd < 1 else f"${usd:,.2f}"


def group_chip(row: GroupRow | str) -> Markup:
    name, tone = GROUP[row if isinstance(row, str) else row.status]
    return chip(name, tone)


def proposal_chip(proposal: Proposal) -> Markup:
    name, tone = PROPOSAL[proposal.status]
    return chip(name, tone)


def run_state(run: Run, state: str) -> tuple[str, str]:
    """(words, tone) of a run; `state` is what `jobs.state` says."""
    if run.status == "done":
        return "done", "good"
    if run.status == "failed":
        return "failed", "bad"
    if state != "idle":
        return ("running", "accent") if state == "working" else ("starting", "accent")
    done = run.tally.total - run.tally.waiting
    return ("interrupted", "bad") if done or run.status == "running" else ("not started", "")


def operation(proposal: Proposal) -> str:
    """The operation in words: "Add a lesson", "Change E-0003"."""
    match proposal.operation:
        case Add():
            return "Add a lesson"
        case Modify(experience_id=of):
            return f"Change {of}"
        case Delete(experience_id=of):
            return f"Delete {of}"
        case Merge(experience_ids=ids):
            return f"Merge {', '.join(ids)}"


def rollout_chips(rollout: Rollout) -> list[Markup]:
    """Reward, advantage and how it ended."""
    found = [chip(f"reward {number(rollout.reward)}", "accent" if (rollout.reward or 0) > 0 else "")]
    if rollout.advantage is not None:
        found.append(
            chip(f"A {number(rollout.advantage, sign=True)}", "good" if rollout.advantage > 0 else "quiet")
        )
    if rollout.error is not None:
        found.append(chip("broke off", "bad"))
    finish = rollout.trajectory.finish_reason
    if finish and finish != "stop":
        found.append(chip(f"ended by {finish}", "bad" if finish == "length" else ""))
    return found
