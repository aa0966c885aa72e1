"""What every built-in verifier is made of: its options, and the guard that keeps error apart from wrong.

1. A `Check` is the options of one kind, validated when it is built, plus the rule that judges an answer.
2. `Guarded` makes a `Verifier` of it: whatever stops the rule from judging (no right answer, an answer that
   is too long, a fault of ours, a number that is no score) gives value None with a reason, never 0.
3. Only what is not about the attempt passes through: somebody stopped the work, the budget is spent, the judge's
   endpoint cannot be used. The attempt is judged when the work goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import ValidationError

from core.errors import BudgetError, InputError, ModelUnavailableError, StoppedError
from core.record import Record
from core.rollout import Score, Task, Trajectory
from core.verifiers.outside import NOTHING, Outside

MAX_ANSWER = 50_000
"""Characters; a longer answer is not judged (it is unscored, not wrong)."""


class Check(Record):
    """Options of one kind of verifier, and how it judges. Picklable."""

    max_answer: ClassVar[int] = MAX_ANSWER

    @property
    def needs_answer(self) -> bool:
        """Whether a task must bring its right answer."""
        return True

    @property
    def longest(self) -> int:
        """Characters of the longest answer that is judged."""
        return self.max_answer

    def ready(self, task: Task) -> None:
        """Make sure that the task's own answer can be compared with.

        Raises:
            ValueError: it cannot, with one sentence that says why.
        """

    def judge(self, task: Task, answer: str) -> Score:
        """Score an answer to a task that is `ready`; may raise, the guard is around it."""
        raise NotImplementedError

    async def judge_trajectory(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        """The same, for checks that ask a model, run a program or read more than the answer."""
        return self.judge(task, trajectory.answer)

    def missing(self, outside: Outside) -> str:
        """What keeps this check from judging anything here, as a sentence; empty where nothing does. May block."""
        return ""

    @classmethod
    def build(cls, kind: str, options: dict[str, Any]) -> Self:
        """Validate the options of a spec.

        Raises:
            InputError: one sentence that names the option and what it may be.
        """
        try:
            return cls.model_validate(options)
        except ValidationError as e:
            raise InputError(_sentence(kind, cls, e)) from e


@dataclass(frozen=True)
class Guarded:
    """A `core.ports.Verifier` made of a check: it never raises for an attempt."""

    kind: str
    check: Check
    outside: Outside = NOTHING

    def trouble(self, task: Task) -> str:
        """Why this verifier cannot check this task; empty where it can."""
        if self.check.needs_answer and (task.answer is None or not task.answer.strip()):
            return f"the verifier {self.kind!r} needs an answer and the task has none"
        try:
            self.check.ready(task)
        except ValueError as e:
            return f"{e}"
        return ""

    async def score(self, task: Task, trajectory: Trajectory) -> Score:
        """The verdict on one attempt.

        Raises:
            StoppedError, BudgetError, ModelUnavailableError: it is the work that cannot go on.
        """
        return await self.score_with(task, trajectory, self.outside)

    async def score_with(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        """The same with other means, for a check that is part of another one."""
        answer = trajectory.answer
        if len(answer) > self.check.longest:
            return Score(
                reason=f"not judged: the answer has {len(answer)} characters, "
                f"the verifier {self.kind!r} reads at most {self.check.longest}"
            )
        try:
            if trouble := self.trouble(task):
                return Score(reason=f"not judged: {trouble}")
            score = await self.check.judge_trajectory(task, trajectory, outside)
        except (StoppedError, BudgetError, ModelUnavailableError):
            raise
        except Exception as e:  # noqa: BLE001  a fault in a verifier must never look like a wrong answer
            return Score(reason=f"the verifier {self.kind!r} failed: {type(e).__name__}: {str(e)[:200]!r}")
        numbers = [*score.parts.values(), *([] if score.value is None else [score.value])]
        if wrong := [n for n in numbers if not 0 <= n <= 1]:  # NaN compares false, so it is caught too
            return Score(reason=f"the verifier {self.kind!r} gave {wrong[0]}, which is no number from 0 to 1")
        return score


def quote(text: str, limit: int = 60) -> str:
    """A short quotation that can always be printed and stored (half surrogates come out escaped)."""
    return (
        repr(text if len(text) <= limit else text[: limit - 1] + "…")
        .encode("utf-8", "backslashreplace")
        .decode()
    )


def _sentence(kind: str, cls: type[Check], error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    option = ".".join(str(part) for part in first["loc"]) or "options"
    known = ", ".join(cls.model_fields)
    if first["type"] == "extra_forbidden":
        return f"The verifier {kind!r} has no option {option!r}; it knows: {known}."
    if first["type"] == "missing":
        return f"The verifier {kind!r} needs the option {option!r}; it knows: {known}."
    reason = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"The verifier {kind!r}, option {option!r}: {reason[:1].lower()}{reason[1:]}."
