"""An answer that is mathematically the right one, however it is written."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.rollout import Score, Task, Trajectory
from core.verifiers import math_pool
from core.verifiers.check import Check, quote
from core.verifiers.outside import Outside


class Math(Check):
    """1 where math-verify finds the answer's last expression equivalent to the task's (LaTeX or plain).

    What takes too long to decide is unscored, not wrong: the time limit ends the process that was at it.
    """

    max_answer: ClassVar[int] = 10_000

    decimals: int = Field(default=6, ge=0, le=15)
    """Decimals that numbers are compared to."""
    time_s: float = Field(default=5.0, gt=0, le=60)

    def ready(self, task: Task) -> None:
        if len(task.answer or "") > self.max_answer:
            raise ValueError(f"the task's answer has more than {self.max_answer} characters")

    async def judge_trajectory(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        # Half surrogates are no mathematics, and no pipe carries them.
        gold, answer = (t.encode("utf-8", "replace").decode() for t in (task.answer or "", trajectory.answer))
        job: dict[str, object] = {"gold": gold, "answer": answer, "decimals": self.decimals}
        verdict = await outside.call(math_pool.ask, job, self.time_s)
        if isinstance(verdict, str):
            return Score(reason=f"not judged: {verdict}")
        if verdict["gold"] is None:
            return Score(reason=f"not judged: the task's answer {quote(gold)} cannot be read as mathematics")
        if verdict["answer"] is None:
            return Score(value=0.0, reason="the answer holds no mathematical expression")
        if verdict["equal"]:
            return Score(value=1.0)
        return Score(
            value=0.0, reason=f"the answer is read as {quote(verdict['answer'])}, right is {quote(gold)}"
        )
