r"""Results of the Berkeley Function-Calling Leaderboard: `result/<model>/**/BFCL_v4_<category>_result.json`.

    {"id": "simple_0", "result": [{"area": "{\"base\": 10}"}], "input_token_count": 120, "latency": 0.8}

1. One result a line. The score file (`score/<model>/**/BFCL_v4_<category>_score.json`) lists what failed: a result that
   it does not list is right, where there is such a file; without one nothing is graded. Where it counts fewer results
   than there are, nobody knows which of those that it does not list were scored: they are ungraded.
2. `result` is the calls of one turn, or a list of turns of steps of calls. Where `inference_log` is there it tells the
   conversation with the results of the tools; without it no call has a result.
3. Neither file holds the questions, but for the log: they are taken from the log, or from the data set
   (`BFCL_v4_<category>.json`) beside the results; else the id stands for the question.
4. Tokens and latency are numbers, or lists of lists of them (turn, step): their sum counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import (
    Aside,
    Attempt,
    Brings,
    Found,
    Remark,
    Seen,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.dialects import Conversation, conversation
from core.importers.getting import as_dict, as_int, as_list, as_number, as_said, as_text
from core.importers.lines import Piece, objects_of, set_aside
from core.importers.opened import Opened
from core.rollout import Usage

FAILED = "Error during inference"
"""What stands in place of a result where the call of the model failed."""

_RIGHT, _WRONG, _UNGRADED = Seen(value=1.0), Seen(value=0.0), Seen()


class Bfcl:
    """The format."""

    name = "bfcl"
    title = "BFCL results"
    brings = Brings(reward="score files", repeats="no", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        return any(
            isinstance(r, dict)
            and r.keys() >= {"id", "result"}
            and ("latency" in r or "input_token_count" in r)
            for r in opened.records
        )

    def read(self, opened: Opened) -> Iterator[Found]:
        model, scores = _model_of(opened.path), _Scores(opened)
        questions = _questions(opened)
        for piece in objects_of(opened):
            yield piece if isinstance(piece, Aside) else _attempt(piece, model, scores, questions)
        yield from scores.remarks()


def _id(value: dict[str, Any]) -> str:
    return as_text(value.get("id"))


def _stem(opened: Opened) -> str:
    return opened.file_name.removesuffix(".json").removesuffix("_result")


def _model_of(path: Path) -> str:
    """The folder below `result`."""
    parts = path.parent.parts
    return parts[parts.index("result") + 1] if "result" in parts[:-1] else ""


class _Scores:
    """What the score file beside the results says."""

    def __init__(self, opened: Opened) -> None:
        path = opened.beside(*_places(opened.path, f"{_stem(opened)}_score.json"))
        self.there = path is not None
        self.total: int | None = None
        self.results = 0
        """Different ids in the results."""
        self._failed: dict[str, str] = {}
        for piece in objects_of(Opened(path)) if path else ():
            if isinstance(piece, Piece) and "valid" in piece.value:
                self._failed[_id(piece.value)] = _kind(piece.value)
            elif isinstance(piece, Piece):
                self.total = as_int(piece.value.get("total_count"))
        if self.total is not None:
            self.results = len({_id(p.value) for p in objects_of(opened) if isinstance(p, Piece)})

    def of(self, own: str) -> tuple[Seen, str]:
        """The score of a result, and why it failed."""
        if not self.there:
            return _UNGRADED, ""
        if own in self._failed:
            return _WRONG, self._failed[own]
        return _UNGRADED if self._leaves_some_out else _RIGHT, ""

    @property
    def _leaves_some_out(self) -> bool:
        return self.total is not None and self.total < self.results

    def remarks(self) -> Iterator[Remark]:
        if not self.there:
            yield Remark(text="There is no score file beside the results: nothing is graded.")
        elif self.total is not None and self.total != self.results:
            rest = "is ungraded, for some were not scored" if self._leaves_some_out else "counts as right"
            yield Remark(
                text=f"The score file counts {self.total} results and the file holds {self.results}: what the score "
                f"file does not list as failed {rest}."
            )


def _places(path: Path, name: str) -> list[str]:
    """Where the score file may be: beside the results, or in the same place below `score` as these below `result`."""
    places = [name]
    for up, folder in enumerate(path.parents):
        if folder.name == "result":
            below = path.parent.relative_to(folder)
            places.append(f"{'../' * (up + 1)}score/{below.as_posix()}/{name}")
    return places


def _kind(failure: dict[str, Any]) -> str:
    error = failure.get("error")
    kind = failure.get("error_type") or as_dict(error).get("error_type")
    return as_text(kind) or as_said(error)[:200]


def _questions(opened: Opened) -> dict[str, Any]:
    """The questions of the data set, by id, where it lies beside the results."""
    path = opened.beside(f"{_stem(opened)}.json")
    pieces = objects_of(Opened(path)) if path else iter(())
    return {
        _id(p.value): p.value["question"] for p in pieces if isinstance(p, Piece) and "question" in p.value
    }


def _attempt(piece: Piece, model: str, scores: _Scores, questions: dict[str, Any]) -> Attempt | Aside:
    value = piece.value
    own = _id(value)
    if not own or "result" not in value:
        return set_aside(piece.place, "it has no id or no result", as_said(value))
    result = value["result"]
    asked = _turns_of(questions.get(own))
    items = _logged(value.get("inference_log")) or [
        *asked[:1],
        *_called(result, value.get("reasoning_content")),
    ]
    said = conversation(items)
    question = _words_of("user", conversation(asked)) if asked else ""
    question = question or _words_of("user", said) or f"task {own}"
    score, failure = scores.of(own)
    failed = isinstance(result, str) and result.startswith(FAILED)
    return new_attempt(
        place=piece.place,
        namespace="bfcl",
        task_id=own,
        question=question,
        system=_words_of("system", said),
        model=model,
        trajectory=new_trajectory(
            messages=said.messages,
            steps=said.steps,
            answer=said.answer or as_said(result),
            finish_reason="step limit" if _forced_to_quit(value.get("inference_log")) else None,
        ),
        scores={"valid": score},
        reward="valid",
        error=as_text(result)[:500] if failed else None,
        usage=_usage(value, said.messages),
        duration_s=_sum(value.get("latency")),
        orphans=said.orphans,
        metadata=_metadata(own, failure),
    )


def _words_of(role: str, said: Conversation) -> str:
    return "\n\n".join([m.content for m in said.messages if m.role == role])


def _metadata(own: str, failure: str) -> dict[str, JsonValue]:
    category = own.rsplit("_", 1)[0]
    return {"category": category, "failure": failure} if failure else {"category": category}


def _turns_of(question: Any) -> list[Any]:
    """The messages of a question: a list of turns of messages, or one turn, or text."""
    if isinstance(question, str):
        return [{"role": "user", "content": question}]
    turns = as_list(question)
    return [m for turn in turns for m in (turn if isinstance(turn, list) else [turn])]


def _logged(log: Any) -> list[dict[str, Any]]:
    """The messages of an inference log: of each turn what was asked, what the model called, what the tools said."""
    items: list[dict[str, Any]] = []
    for turn in as_list(log):
        for key, entries in as_dict(turn).items():
            if key == "begin_of_turn_query":
                items += [m for m in as_list(entries) if isinstance(m, dict)]
            elif key.startswith("step_"):
                items += _step([e for e in as_list(entries) if isinstance(e, dict)])
    return items


def _step(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    decoded = next((d for e in entries if (d := as_list(e.get("model_response_decoded")))), [])
    items: list[dict[str, Any]] = []
    for entry in entries:
        if entry.get("role") == "assistant":
            calls = _calls(entry.get("content")) or [_written(d) for d in decoded if isinstance(d, str)]
            words = "" if _calls(entry.get("content")) else entry.get("content")
            thought = entry.get("reasoning_content")
            items.append(
                {"role": "assistant", "content": words, "reasoning_content": thought, "tool_calls": calls}
            )
        elif entry.get("role") == "tool":
            items.append({"role": "tool", "content": entry.get("content")})
    return items


def _forced_to_quit(log: Any) -> bool:
    if not log:
        return False
    steps = [
        entries for turn in as_list(log) for key, entries in as_dict(turn).items() if key.startswith("step_")
    ]
    last = as_dict(next(iter(as_list(steps[-1])[-1:]), None)) if steps else {}
    return "forced to quit" in as_text(last.get("content"))


def _called(result: Any, thought: Any = None) -> list[dict[str, Any]]:
    """The calls of a result without a log, turn by turn: of nothing is told what came of it."""
    calls = _calls(result)
    if calls or isinstance(result, str):
        words = "" if calls else result
        return [{"role": "assistant", "content": words, "reasoning_content": thought, "tool_calls": calls}]
    return [item for part in as_list(result) for item in _called(part)] if _depth(result) < 5 else []


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list) and value and depth < 5:
        value, depth = value[0], depth + 1
    return depth


def _calls(content: Any) -> list[dict[str, Any]]:
    """Calls as objects of one member each, the function's name and its arguments; none where it is something else."""
    calls = [c for c in as_list(content) if isinstance(c, dict) and len(c) == 1]
    return [{"name": name, "arguments": given} for c in calls for name, given in c.items()]


def _written(call: str) -> dict[str, Any]:
    """A call as it is written in Python: area(base=10)."""
    name, _, given = call.partition("(")
    return {"name": name.strip(), "arguments": json.dumps({"arguments": given.rstrip().removesuffix(")")})}


def _usage(value: dict[str, Any], messages: tuple[Any, ...]) -> Usage:
    prompt, completion = _sum(value.get("input_token_count")), _sum(value.get("output_token_count"))
    if prompt is None and completion is None:
        return new_usage()
    calls = [m.role for m in messages].count("assistant")
    return new_usage(calls=calls, prompt_tokens=int(prompt or 0), completion_tokens=int(completion or 0))


def _sum(value: Any, depth: int = 3) -> float | None:
    """The sum of a number, or of lists of lists of numbers; None where there is none."""
    if not isinstance(value, list):
        number = as_number(value)
        return number if number is not None and number >= 0 else None
    parts = [part for each in value if depth and (part := _sum(each, depth - 1)) is not None]
    return sum(parts) if parts else None
