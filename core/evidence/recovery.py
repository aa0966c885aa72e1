"""Recovery: what an agent did after a call that failed (DESIGN 2.5: retry, switch tool, give up)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from core.rollout import Step, Trajectory

Habit = Literal["retry_same", "fix_parameters", "switch_tool", "give_up"]

HABITS: Mapping[Habit, str] = {
    "retry_same": "repeated the same call",
    "fix_parameters": "called the tool again with other parameters",
    "switch_tool": "switched to another tool",
    "give_up": "gave up",
}
"""What can follow a failed call, in words."""

MAX_MESSAGE = 2_000
"""Characters of an error message that its signature is read from."""

_CLASS = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Timeout|Warning|Interrupt))\b")


@dataclass(frozen=True, slots=True)
class Recovery:
    """One failed call and what followed it."""

    step: int
    """Place of the failed call among the steps, from 0."""
    tool: str
    error: str
    """Its signature (`error_signature`)."""
    habit: Habit
    then: str
    """The tool called next; empty where none was."""
    worked: bool
    """Whether the next call succeeded; False where its outcome is not known."""

    @property
    def words(self) -> str:
        """In words: "switched to another tool (list_files), which worked"."""
        if self.habit == "give_up":
            return HABITS[self.habit]
        then = f" ({self.then})" if self.habit == "switch_tool" else ""
        return f"{HABITS[self.habit]}{then}, which {'worked' if self.worked else 'did not help'}"


def recoveries(trajectory: Trajectory) -> tuple[Recovery, ...]:
    """What was done after each failed call, in order; one entry for every step that failed."""
    steps = trajectory.steps
    return tuple(
        Recovery(
            step=i,
            tool=step.tool,
            error=signature,
            habit=_habit(step, following),
            then=following.tool if following else "",
            worked=following is not None and following.success is True,
        )
        for i, (step, following) in enumerate(zip_longest(steps, steps[1:]))
        if (signature := error_signature(step)) is not None
    )


def error_signature(step: Step) -> str | None:
    """What kind of error a failed step met: the exception's class, else its message without particulars.

    None for a step that did not fail. A step whose success is unknown failed only if it has an error.
    """
    if step.success is not False and not step.error:
        return None
    message = (step.error or step.output)[:MAX_MESSAGE]
    named = _CLASS.search(message)
    if named:
        return named[1]
    plain = re.sub(r"(['\"`]).*?\1|\S*[/\\]\S+", "…", message.split("\n")[0])
    # whatever is not a plain word is a particular: a number, an id, a key
    words = [
        w if re.fullmatch(r"[^\W\d_]{1,20}", w) else "…"
        for w in re.sub(r"[.,:;!?()]+(?=\s|$)", "", plain).split()
    ]
    return " ".join(words[:6]).lower() or "an error without a message"


def same_call(a: Step, b: Step) -> bool:
    """Whether two steps call the same tool with the same parameters."""
    return a.tool == b.tool and call_key(a) == call_key(b)


def call_key(step: Step) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Equal for identical calls: the tool and its parameters in any order."""
    return step.tool, tuple(sorted((key, repr(value)) for key, value in step.parameters.items()))


def _habit(failed: Step, following: Step | None) -> Habit:
    if following is None:
        return "give_up"
    if following.tool != failed.tool:
        return "switch_tool"
    return "retry_same" if same_call(failed, following) else "fix_parameters"
