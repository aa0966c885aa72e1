"""Words and tones for what the core names by a code, in one place."""

from __future__ import annotations

from core.experience import Add, Delete, Merge, Modify, Proposal
from core.rollout import NO_PRICE, UNGRADED, Group, GroupRow, Rollout, RunStatus, Usage
from core.settings import RewardConfig
from core.workspace.reweighing import Source
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
    "quarantined": ("set aside", "bad"),
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
COMPONENT = {
    "verified": "the verifier's score",
    "tools": "tool calls that worked",
    "accepted": "acceptance by a user",
    "epistemic": "novelty",
}
"""The components of a reward."""
CHECKED = {
    "exact": "the answer has to be exactly right",
    "text": "the words of the answer have to be right",
    "choice": "the right option has to be chosen",
    "numeric": "the number has to be right",
    "regex": "the answer has to match a pattern",
    "json_schema": "the answer has to fit a JSON schema",
    "math": "the expression has to be equal",
    "python": "the tests have to pass",
    "judge": "a model judges the answer",
    "function": "a function of yours judges the answer",
    "graded": "content and form are scored",
    "none": "nothing here checks it",
}
"""What each kind of verifier asks of an answer."""
EXTRACTOR = {
    "evidence": "counted evidence, no model",
    "llm": "a model's reading of the group",
    "person": "a person",
    "correction": "a person's correction of a rollout",
    "pack": "an imported pack",
    "audit": "an audit of the library",
}


def plural(n: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `3 replies`."""
    if n != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{n:,} {noun}"


def number(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """A number for reading; "none" where there is none, which is not 0."""
    if value is None:
        return "none"
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def money(usd: float) -> str:
    return f"${usd:.4f}" if 0 < usd < 1 else f"${usd:,.2f}"


def cost(usage: Usage, *, free: bool = False) -> str:
    """`$0.0123`, or `no price` where its endpoint has none; `free` where only the embedded model was asked."""
    return money(usage.cost_usd) if usage.priced(free=free) else NO_PRICE


def costs(least: Usage, most: Usage, *, free: bool = False) -> str:
    """`$0.0100 to $0.0200`, or `no price`."""
    return f"{money(least.cost_usd)} to {money(most.cost_usd)}" if most.cost_usd else cost(most, free=free)


def between(least: int, most: int) -> str:
    """`1,200 to 5,000`."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def span(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


EITHER: frozenset[Source] = frozenset({"recorded", "verifiers"})
VERIFIED: dict[frozenset[Source], str] = {
    frozenset({"recorded"}): "the reward that was recorded",
    EITHER: "the reward that was recorded, the verifier's score, or the mean of both",
}
"""The component `verified` by who said how well rollouts did, where that is not a verifier alone."""


def reward(config: RewardConfig, by: frozenset[Source] = frozenset()) -> str:
    """`0.7 × the verifier's score + 0.3 × novelty (ASO)`; the component alone where it is the only one."""
    weights, names = config.by_component, COMPONENT | {"verified": VERIFIED.get(by, COMPONENT["verified"])}
    if len(weights) == 1:
        return names[next(iter(weights))]
    total = " + ".join(f"{weight:g} × {names[part]}" for part, weight in weights.items())
    return total if config.preset == "own" else f"{total} ({config.preset})"


def checked(verifier: str) -> str:
    """How the answers to a task are checked."""
    return CHECKED.get(verifier, f"checked by {verifier}")


def group_chip(group: Group | GroupRow) -> Markup:
    name, tone = GROUP[group.status]
    return chip("ungraded" if group.reason == UNGRADED else name, tone)


def proposal_chip(proposal: Proposal) -> Markup:
    name, tone = PROPOSAL[proposal.status]
    return chip(name, tone)


JOB = {
    "waiting": ("queued", "accent"),
    "running": ("running", "accent"),
    "pausing": ("pausing", "accent"),
    "paused": ("paused", ""),
    "cancelling": ("cancelling", "accent"),
    "failed": ("failed", "bad"),
    "cancelled": ("cancelled", "quiet"),
}
GATE = {
    "none": "collect, review at the end",
    "review": "wait for my review",
    "auto": "publish all valid proposals",
    "trial": "publish what passes on trial tasks",
}


def run_state(status: RunStatus, job_state: str | None, begun: bool) -> tuple[str, str]:
    """(words, tone) of a run.

    Args:
        status: of the run.
        job_state: of the newest job on it; None where there is none.
        begun: whether any of its groups is finished.
    """
    if status in ("done", "failed", "cancelled"):
        return status, {"done": "good", "failed": "bad", "cancelled": "quiet"}[status]
    if status == "review" and job_state in (None, "paused", "done"):
        return "waits for review", "accent"
    if job_state not in (None, "done"):
        return JOB[job_state or ""]
    return ("interrupted", "bad") if begun or status == "running" else ("not started", "")


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
