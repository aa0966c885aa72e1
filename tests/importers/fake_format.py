"""A format whose records are our own attempts, a line each: what the pipeline does with them is all that is tested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark
from core.importers.opened import Opened


class FakeFormat:
    """The format."""

    name = "fake"
    title = "Fake dump"
    brings = Brings(reward="yes", repeats="yes", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return opened.head.startswith(b'{"fake"')

    def read(self, opened: Opened) -> Iterator[Found]:
        beside = opened.beside("side.json")
        grades = json.loads(beside.read_text() or "{}") if beside else {}
        for number, line in opened.lines():
            value = json.loads(line)
            value.pop("fake")
            if "remark" in value:
                yield Remark(text=value["remark"])
            elif "bad" in value:
                yield Aside(place=f"line {number}", reason=value["bad"], raw=line.decode())
            elif "crash" in value:
                raise TypeError(value["crash"])
            else:
                if grade := grades.get(str(number)):
                    value |= {"scores": {"reward": {"value": grade}}, "reward": "reward"}
                yield Attempt(place=f"line {number}", **value)


def attempt(
    task: str | None = "t1", reward: float | None = None, answer: str = "a", **fields: Any
) -> dict[str, Any]:
    """One line: an attempt at a task, with one score, `reward`, that the format defines to be the reward."""
    scores = {} if reward is None else {"scores": {"reward": {"value": reward}}, "reward": "reward"}
    question = fields.pop("question", f"What about {task}?")
    steps = fields.pop("steps", ())
    trajectory = {
        "messages": [{"role": "assistant", "content": answer}],
        "steps": list(steps),
        "answer": answer,
    }
    return {"fake": 1, "task_id": task, "question": question, "trajectory": trajectory, **scores, **fields}


def scored(task: str = "t1", answer: str = "a", **scores: float | None) -> dict[str, Any]:
    """One line: an attempt with scores, of which the format says nothing."""
    return attempt(task, answer=answer, scores={name: {"value": value} for name, value in scores.items()})


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
