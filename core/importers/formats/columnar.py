"""Evaluations of Qwen2.5-Math and what grew from it: one row is a task, its attempts stand in parallel lists.

    {"idx": 3, "question": "...", "gt": "420", "code": ["...", ...], "pred": ["420", ...], "score": [true, ...], ...}

1. `score[i]` is the reward of the attempt whose text is `code[i]` (or `response[i]`) and whose answer is `pred[i]`.
2. Lists of different lengths: as many attempts as the longest has; what is missing is ungraded.
3. Of the model the file tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark
from core.importers.dialects import conversation
from core.importers.getting import as_json, as_list, as_said, as_seen, as_text
from core.importers.lines import Piece, records_of, set_aside
from core.importers.opened import Opened
from core.rollout import Trajectory

_TEXTS = ("code", "response", "responses", "completion")
_QUESTIONS = ("question", "query", "problem", "prompt")
_KEPT = ("level", "type", "subject", "data_source")


class Columnar:
    """The format."""

    name = "columnar"
    title = "Qwen math evaluation"
    brings = Brings(reward="yes", repeats="yes", steps="no")

    def recognises(self, opened: Opened) -> bool:
        return any(
            isinstance(r, dict)
            and "idx" in r
            and isinstance(r.get("pred"), list)
            and isinstance(r.get("score"), list)
            for r in opened.records
        )

    def read(self, opened: Opened) -> Iterator[Found]:
        for piece in records_of(opened):
            if isinstance(piece, Aside):
                yield piece
            else:
                yield from _attempts(piece)


def _attempts(piece: Piece) -> Iterator[Found]:
    row = piece.value
    question = next((text for k in _QUESTIONS if (text := as_text(row.get(k)))), "")
    if not question:
        yield set_aside(piece.place, "there is no question", as_said(row))
        return
    texts = next((held for k in _TEXTS if (held := as_list(row.get(k)))), [])
    columns = {"text": texts, "pred": as_list(row.get("pred")), "score": as_list(row.get("score"))}
    lengths = {len(held) for held in columns.values() if held}
    if not lengths:
        yield set_aside(piece.place, "it holds no attempt", as_said(row))
        return
    if len(lengths) > 1:
        yield Remark(
            text="Lists of one row have different lengths; what is missing of an attempt is ungraded."
        )
    for i in range(max(lengths)):
        yield _attempt(
            piece, question, i, {name: held[i] if i < len(held) else None for name, held in columns.items()}
        )


def _attempt(piece: Piece, question: str, number: int, of: dict[str, Any]) -> Attempt:
    row = piece.value
    said = as_said(of["text"]) or as_said(of["pred"])
    system = as_text(row.get("system"))
    asked = [{"role": "system", "content": system}] if system else []
    read = conversation(
        [*asked, {"role": "user", "content": question}, {"role": "assistant", "content": said}]
    )
    kept: dict[str, JsonValue] = {
        k: as_json(row[k]) for k in _KEPT if isinstance(row.get(k), str | int | float)
    }
    report = as_list(row.get("report"))
    if number < len(report) and isinstance(report[number], str):
        kept["report"] = as_text(report[number][:500])
    gt = row.get("gt") if row.get("gt") is not None else row.get("answer")
    return Attempt(
        place=f"{piece.place}, attempt {number + 1}",
        namespace=as_text(row.get("data_source")),
        task_id=as_text(row.get("idx")) or None,
        question=question,
        system=system,
        expected=None if gt is None else as_said(gt) or None,
        repeat=number,
        trajectory=Trajectory(messages=read.messages, answer=as_said(of["pred"]) or read.answer),
        scores={"score": as_seen(of["score"])},
        reward="score",
        metadata=kept,
    )
