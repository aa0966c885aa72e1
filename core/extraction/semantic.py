"""Semantic advantage S_i: why one rollout out- or underperformed its group (TF-GRPO; DESIGN 2.4).

Every rollout of a contrasted group has one. Its verdict is the sign of the measured advantage; what the model said
otherwise is kept beside it. Where the model left a scored rollout out, the measured figures speak; a rollout that could
not be scored, or broke off, says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from core.extraction import replies
from core.extraction.summarise import Summary, Verdict, verdict_of
from core.record import Record
from core.rollout import Group, Rollout


class SemanticAdvantage(Record):
    """S_i of one rollout."""

    rollout_id: str
    verdict: Verdict | Literal["unscored"]
    """The sign of the measured advantage; "unscored" where there is none."""
    why: str
    deciding_step: str = ""
    """The step or decision, in the model's words."""
    step: int | None = Field(default=None, ge=1)
    """The number of the deciding step, from 1, where one was named that there is."""
    said: str = ""
    """The model's own verdict; another one than `verdict` means that it misread the attempt."""
    by: Literal["model", "measurement"] = "model"
    """Who says why."""

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        step = f" (deciding step: {self.deciding_step})" if self.deciding_step else ""
        return f"{self.verdict}: {self.why}{step}"


def measured(group: Group, why: Mapping[str, str] | str) -> list[SemanticAdvantage]:
    """S_i of every rollout of a group from its figures alone.

    Args:
        group: its rollouts.
        why: why the model said nothing about a scored one, for all or by rollout id.
    """
    scored = [r.reward for r in group.rollouts if r.reward is not None and r.outcome == "scored"]
    mean = sum(scored) / len(scored) if scored else 0.0
    return [
        _measured(r, mean, why if isinstance(why, str) else why.get(r.id, "the model gave no reason"))
        for r in group.rollouts
    ]


def _measured(rollout: Rollout, mean: float, why: str) -> SemanticAdvantage:
    verdict: Verdict | Literal["unscored"] = verdict_of(rollout)
    if rollout.error is not None:
        verdict, said = "unscored", f"it broke off and took no part: {rollout.error}"
    elif rollout.reward is None:
        reasons = [s.reason for s in rollout.scores.values() if s.reason]
        said = f"it could not be scored and took no part{': ' if reasons else ''}{'; '.join(reasons)}"
        verdict = "unscored"
    else:
        said = f"reward {rollout.reward:.3g} against a mean of {mean:.3g}; {why}"
    return SemanticAdvantage(rollout_id=rollout.id, verdict=verdict, why=said, by="measurement")


def read_advantages(
    items: Sequence[Any], group: Group, summaries: Sequence[Summary], unsummarised: Mapping[str, str]
) -> tuple[list[SemanticAdvantage], list[str]]:
    """S_i of every rollout of the group in its order, and notes on what the model left out or misread.

    Args:
        items: what the reply held; R1, R2, ... are the summaries in their order.
        group: all rollouts.
        summaries: of those that the model was shown.
        unsummarised: why it was not shown another scored one, by rollout id.
    """
    rollouts = {r.id: r for r in group.rollouts}
    named: dict[str, str] = {}
    for i, s in enumerate(summaries, start=1):
        named |= {f"R{i}": s.rollout_id, str(i): s.rollout_id, s.rollout_id.upper(): s.rollout_id}
    found: dict[str, SemanticAdvantage] = {}
    strays = 0
    for item in items:
        entry = replies.lowered(item) if isinstance(item, Mapping) else {}
        label = next(iter(replies.labels_in(replies.first_of(entry, "rollout", "id", "label"))), "")
        rollout_id = named.get(label.upper())
        if rollout_id is None or rollout_id in found or not _why(entry):
            strays += 1
        else:
            found[rollout_id] = _advantage(entry, rollouts[rollout_id])
    missing = [s.rollout_id for s in summaries if s.rollout_id not in found]
    notes = [f"Group {group.id}: the model gave no semantic advantage for {m}." for m in missing]
    if strays:
        notes.append(
            f"Group {group.id}: {strays} semantic advantages named no attempt, one twice, or no reason."
        )
    notes += [
        f"Group {group.id}: the model called {a.rollout_id} {a.said!r}, but it was measured as {a.verdict}."
        for a in found.values()
        if a.said and a.said != a.verdict
    ]
    return [found.get(a.rollout_id, a) for a in measured(group, unsummarised)], notes


_VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(("better", "above", "good", "outperformed", "+"), "better"),
    **dict.fromkeys(("worse", "below", "bad", "underperformed", "-"), "worse"),
    **dict.fromkeys(("par", "equal", "same", "neutral", "average", "0"), "par"),
}


def _why(entry: Mapping[str, Any]) -> str:
    return replies.plain(replies.first_of(entry, "why", "reason", "explanation"))


def _advantage(entry: Mapping[str, Any], rollout: Rollout) -> SemanticAdvantage:
    deciding = replies.plain(replies.first_of(entry, "deciding_step", "step"))
    said = replies.plain(entry.get("verdict")).casefold()
    digits = re.search(r"\d{1,6}", deciding)
    number = int(digits[0]) if digits else 0
    return SemanticAdvantage(
        rollout_id=rollout.id,
        verdict=verdict_of(rollout),
        why=_why(entry),
        deciding_step=deciding,
        step=number if 1 <= number <= len(rollout.trajectory.steps) else None,
        said=_VERDICTS.get(said, said[:40]),
    )
