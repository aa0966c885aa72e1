"""The answer's wording, whatever its capitals, punctuation and spacing."""

from __future__ import annotations

from typing import Literal

from core.rollout import Score, Task
from core.verifiers.check import Check, quote
from core.verifiers.wording import normalise, places


class Text(Check):
    """1 where the normal forms agree (`core.verifiers.wording`).

    `contains` looks for the right answer as whole words; it cannot tell a denial ("not Paris") from
    an answer.
    """

    mode: Literal["equal", "contains"] = "equal"

    def ready(self, task: Task) -> None:
        if not normalise(task.answer or ""):
            raise ValueError(
                f"the answer {quote(task.answer or '')} holds no letter, digit or symbol to compare; "
                "use the verifier 'exact'"
            )

    def judge(self, task: Task, answer: str) -> Score:
        expected, given = normalise(task.answer or ""), normalise(answer)
        if self.mode == "equal":
            if expected == given:
                return Score(value=1.0)
            return Score(value=0.0, reason=f"expected {quote(expected)}, got {quote(given)}")
        if places(expected, given):
            return Score(value=1.0)
        return Score(value=0.0, reason=f"{quote(expected)} is not in the answer")
