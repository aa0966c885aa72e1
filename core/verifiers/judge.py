"""A model's verdict by a rubric."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from core.ports import ChatModel, Completion, Sampling
from core.record import Record, canonical_json
from core.rollout import Message, Score, Step, Task, Trajectory
from core.verifiers.check import Check
from core.verifiers.outside import Outside

CHARACTERS_A_TOKEN = 3
"""Counted carefully: what does not fit is not judged, rather than cut."""
SHOWN_OF_A_STEP = 600
"""Characters of a step's output that the judge is shown."""
KEPT_OF_A_REPLY = 2000

_NO_JUDGE = "no endpoint has the role of a judge"
_OUT_OF_RANGE = "must be a number from 0 to 1"


class Criterion(Record):
    """One thing that is judged by itself."""

    text: str = Field(min_length=1)
    """What is asked for."""
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class Judge(Check):
    """A score from 0 to 1, or one for each criterion and their weighted mean; temperature 0.

    A reply that cannot be read is asked for once more with what was wrong; then the attempt is unscored, and the
    reply kept in the reason.
    """

    rubric: str = Field(min_length=1, max_length=20_000)
    criteria: dict[Annotated[str, Field(min_length=1, max_length=60)], Criterion] = Field(
        default_factory=dict, max_length=20
    )
    """By name; the score of each is kept as a part."""
    show_answer: bool = True
    """Whether the judge sees the right answer, where the task has one."""
    max_tokens: int = Field(default=512, ge=32, le=8192)
    """Of a reply."""

    @property
    def needs_answer(self) -> bool:
        return False

    def missing(self, outside: Outside) -> str:
        return f"{_NO_JUDGE}." if outside.judge is None else ""

    async def judge_trajectory(self, task: Task, trajectory: Trajectory, outside: Outside) -> Score:
        if outside.judge is None:
            return Score(reason=f"not judged: {_NO_JUDGE}")
        messages = self._prompt(task, trajectory)
        reply = await self._ask(outside.judge, messages)
        if isinstance(reply, str):
            return Score(reason=f"not judged: {reply}")
        try:
            return self._read(reply.text)
        except ValueError as e:
            said = Message(role="assistant", content=reply.text[:KEPT_OF_A_REPLY])
            again = f"That reply could not be used: {e}. Answer again with the whole JSON object and nothing else."
            reply = await self._ask(outside.judge, [*messages, said, Message(role="user", content=again)])
        if isinstance(reply, str):
            return Score(reason=f"not judged: {reply}")
        try:
            return self._read(reply.text)
        except ValueError as e:
            return Score(
                reason=f"not judged: the verdict could not be read, {e}; it was: {reply.text[:KEPT_OF_A_REPLY]}"
            )

    async def _ask(self, model: ChatModel, messages: list[Message]) -> Completion | str:
        room = (model.context_length - self.max_tokens) * CHARACTERS_A_TOKEN
        if (length := sum(len(m.content) for m in messages)) > room:
            return f"the attempt does not fit the judge's context ({length:,} of {max(0, room):,} characters)"
        sampling = Sampling(
            temperature=0.0, top_p=1.0, max_tokens=self.max_tokens, json_schema=canonical_json(self._schema())
        )
        (reply,) = await model.complete(messages, sampling)
        return f"the judge gave no reply: {reply}" if isinstance(reply, str) else reply

    def _prompt(self, task: Task, trajectory: Trajectory) -> list[Message]:
        answer = task.answer if self.show_answer else None
        values = {
            "rubric": self.rubric,
            "scale": self._scale(),
            "form": self._form(),
            "question": _fence(task.question),
            "answer": "(not given)" if answer is None else _fence(answer),
            "steps": _fence("\n".join(map(_line, trajectory.steps))) if trajectory.steps else "(none)",
            "attempt": _fence(trajectory.answer),
        }
        return [
            Message(
                role=cast(Literal["system", "user"], role),
                content=re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], text),
            )
            for role, text in _template()
        ]

    def _scale(self) -> str:
        if not self.criteria:
            return "The score is 1 where the rubric is wholly met, 0 where not at all, and in between for a part of it."
        lines = [f"- {name}: {criterion.text}" for name, criterion in self.criteria.items()]
        return "\n".join(
            ["Each criterion gets a score of its own, from 0 (not met at all) to 1 (wholly met):", *lines]
        )

    def _form(self) -> str:
        number = "<number from 0 to 1>"
        if not self.criteria:
            return f'{{"reason": "<one or two sentences>", "score": {number}}}'
        scores = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {number}" for name in self.criteria)
        return f'{{"reason": "<one or two sentences>", "scores": {{{scores}}}}}'

    def _schema(self) -> dict[str, Any]:
        number = {"type": "number", "minimum": 0, "maximum": 1}
        scores = _object(dict.fromkeys(self.criteria, number)) if self.criteria else number
        return _object({"reason": {"type": "string"}, "scores" if self.criteria else "score": scores})

    def _read(self, text: str) -> Score:
        """Raises ValueError with what is wrong, as the judge is told it."""
        key = "scores" if self.criteria else "score"
        verdict = _json_object(text, key)
        reason = str(verdict.get("reason") or "")[:KEPT_OF_A_REPLY]
        if not self.criteria:
            return Score(value=_number(verdict[key], key), reason=reason)
        scores = verdict[key]
        if not isinstance(scores, dict):
            raise ValueError('"scores" must be an object with a number for each criterion')
        if absent := [name for name in self.criteria if name not in scores]:
            raise ValueError(f'"scores" lacks {", ".join(map(json.dumps, absent))}')
        parts = {name: _number(scores[name], name) for name in self.criteria}
        total = sum(criterion.weight for criterion in self.criteria.values())
        value = sum(criterion.weight * parts[name] for name, criterion in self.criteria.items()) / total
        return Score(value=min(1.0, max(0.0, value)), reason=reason, parts=parts)


@cache
def _template() -> tuple[tuple[str, str], ...]:
    text = (files("core.verifiers") / "prompts" / "judge.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (system|user)[ \t]*\n", text, flags=re.MULTILINE)
    return tuple((parts[i], parts[i + 1].strip()) for i in range(0, len(parts), 2))


def _fence(text: str) -> str:
    """Untrusted text between two lines that it cannot contain: their mark is made from the text itself."""
    clean = text.encode("utf-8", "replace").decode()
    mark = hashlib.sha256(clean.encode()).hexdigest()[:12]
    return f'<data id="{mark}">\n{clean}\n</data id="{mark}">'


def _line(step: Step) -> str:
    outcome = {"succeeded": "ok", "failed": f"failed: {step.error or ''}"}.get(step.ended, step.ended)
    output = step.output
    if len(output) > SHOWN_OF_A_STEP:
        half = SHOWN_OF_A_STEP // 2
        left_out = len(output) - 2 * half
        output = f"{output[:half]} [... {left_out:,} characters left out ...] {output[-half:]}"
    return f"- {step.tool}({json.dumps(step.parameters, ensure_ascii=False, default=str)}) -> {outcome}: {output}"


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _number(value: Any, name: str) -> float:
    if (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
    ):  # NaN is caught too
        raise ValueError(f"{json.dumps(name)} {_OUT_OF_RANGE}")
    return float(value)


def _json_object(text: str, key: str) -> dict[str, Any]:
    """The last JSON object of a reply that has the key, whatever is written around it."""
    decoder, found = json.JSONDecoder(), None
    position, tries = text.find("{"), 0
    while position >= 0 and tries < 50:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end, tries = position + 1, tries + 1
        else:
            found = value if key in value else found
        position = text.find("{", end)
    if found is None:
        raise ValueError(f"it holds no JSON object with {json.dumps(key)}")
    return cast("dict[str, Any]", found)
