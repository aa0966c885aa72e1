"""Evaluations of Qwen2.5-Math and what grew from it: one row is a task, its attempts stand in parallel lists.

    {"idx": 3, "question": "...", "gt": "420", "code": ["...", ...], "pred": ["420", ...], "score": [true, ...], ...}

1. `score[i]` is the reward of the attempt whose text is `code[i]` (or `response[i]`) and whose answer is `pred[i]`.
2. Lists of different lengths: as many attempts as the longest has; what is missing is ungraded.
3. Of the model the file tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from pydantic import JsonValue

from core.importers.attempt import Aside, Attempt, Brings, Found, Remark, new_attempt, new_trajectory
from core.importers.dialects import conversation
from core.importers.getting import as_json, as_list, as_said, as_seen, as_text
from core.importers.lines import Piece, nothing_done, records_of, set_aside
from core.importers.opened import Opened
from core.rollout import Message

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


class _Row(NamedTuple):
    """What all attempts of a row share."""

    place: str
    question: str
    system: str
    opening: tuple[Message, ...]
    expected: str | None
    namespace: str
    task_id: str | None
    kept: dict[str, JsonValue]
    reports: list[Any]


def _attempts(piece: Piece) -> Iterator[Found]:
    row = piece.value
    question = next((text for k in _QUESTIONS if (text := as_text(row.get(k)))), "")
    if not question:
        yield set_aside(piece.place, "there is no question", as_said(row))
        return
    texts = next((held for k in _TEXTS if (held := as_list(row.get(k)))), [])
    columns = [texts, as_list(row.get("pred")), as_list(row.get("score"))]
    if columns[2] and not (columns[0] or columns[1]):
        yield nothing_done(piece.place, as_said(row))
        return
    lengths = {len(held) for held in columns if held}
    if not lengths:
        yield set_aside(piece.place, "it holds no attempt", as_said(row))
        return
    if len(lengths) > 1:
        yield Remark(
            text="Lists of one row have different lengths; what is missing of an attempt is ungraded."
        )
    shared = _shared(piece, question)
    for number, (text, pred, score) in enumerate(zip_longest(*columns)):
        yield _attempt(shared, number, as_said(text), as_said(pred), score)


def _shared(piece: Piece, question: str) -> _Row:
    row = piece.value
    system = as_text(row.get("system"))
    asked = [{"role": "system", "content": system}] if system else []
    gt = row.get("gt") if row.get("gt") is not None else row.get("answer")
    return _Row(
        place=piece.place,
        question=question,
        system=system,
        opening=conversation([*asked, {"role": "user", "content": question}]).messages,
        expected=None if gt is None else as_said(gt) or None,
        namespace=as_text(row.get("data_source")),
        task_id=as_text(row.get("idx")) or None,
        kept={k: as_json(row[k]) for k in _KEPT if isinstance(row.get(k), str | int | float)},
        reports=as_list(row.get("report")),
    )


def _attempt(row: _Row, number: int, text: str, pred: str, score: Any) -> Attempt:
    read = conversation([{"role": "assistant", "content": text or pred}])
    kept = dict(row.kept)
    if number < len(row.reports) and isinstance(row.reports[number], str):
        kept["report"] = as_text(row.reports[number][:500])
    return new_attempt(
        place=f"{row.place}, attempt {number + 1}",
        namespace=row.namespace,
        task_id=row.task_id,
        question=row.question,
        system=row.system,
        expected=row.expected,
        repeat=number,
        trajectory=new_trajectory(messages=row.opening + read.messages, answer=pred or read.answer),
        scores={"score": as_seen(score)},
        reward="score",
        metadata=kept,
    )
