"""Of tasks that nothing here can check: their attempts were graded elsewhere."""

from __future__ import annotations

from core.rollout import Score, Task
from core.verifiers.check import Check
from core.verifiers.outside import Outside

_WHY = (
    "nothing here checks its tasks (their attempts were graded elsewhere); to sample them anew, import them again as "
    "tasks, with their answers"
)


class Unchecked(Check):
    """Never gives a value: that is not 0."""

    @property
    def needs_answer(self) -> bool:
        return False

    def judge(self, task: Task, answer: str) -> Score:
        return Score(reason=f"not judged: {_WHY}")

    def missing(self, outside: Outside) -> str:
        return f"{_WHY[0].upper()}{_WHY[1:]}."
