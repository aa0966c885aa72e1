"""Right content and asked form, weighed."""

from __future__ import annotations

from pydantic import Field, InstanceOf

from core.rollout import Score, Task, Trajectory
from core.settings import VerifierSpec
from core.verifiers.check import Check, Guarded
from core.verifiers.outside import Outside


class GradedOptions(Check):
    """Options of `graded`: the two specs and how much the content weighs."""

    content: VerifierSpec
    form: VerifierSpec
    content_weight: float = Field(default=0.5, gt=0, lt=1)


class Graded(Check):
    """value = w * content + (1 - w) * form, with both kept as parts; None where either is None."""

    content: InstanceOf[Guarded]
    form: InstanceOf[Guarded]
    content_weight: float

    @property
    def needs_answer(self) -> bool:
        return self.content.check.needs_answer or self.form.check.needs_answer

    @property
    def longest(self) -> int:
        return min(self.content.check.longest, self.form.check.longest)

    def ready(self, task: Task) -> None:
        for part in (self.content, self.form):
            if trouble := part.trouble(task):
                raise ValueError(trouble)

    async def judge_trajectory(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        scores = {
            name: await part.score_with(task, trajectory, outside)
            for name, part in (("content", self.content), ("form", self.form))
        }
        parts = {name: s.value for name, s in scores.items() if s.value is not None}
        reason = "; ".join(f"{name}: {s.reason}" for name, s in scores.items() if s.reason)
        if len(parts) < len(scores):
            return Score(reason=reason, parts=parts)
        w = self.content_weight
        # The clamp only takes off what rounding may add.
        value = min(1.0, max(0.0, w * parts["content"] + (1 - w) * parts["form"]))
        return Score(value=value, reason=reason, parts=parts)

    def missing(self, outside: Outside) -> str:
        return self.content.check.missing(outside) or self.form.check.missing(outside)
