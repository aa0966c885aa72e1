"""The answer, to the letter."""

from __future__ import annotations

from core.rollout import Score, Task
from core.verifiers.check import Check, quote


class Exact(Check):
    """1 where the answer equals the task's, outer white space ignored."""

    case: bool = True
    """Whether capitals count."""

    def judge(self, task: Task, answer: str) -> Score:
        expected, given = (task.answer or "").strip(), answer.strip()
        if not self.case:
            expected, given = expected.casefold(), given.casefold()
        if expected == given:
            return Score(value=1.0)
        return Score(value=0.0, reason=f"expected {quote(expected)}, got {quote(given)}")
