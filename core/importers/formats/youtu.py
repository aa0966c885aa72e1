"""The database of youtu-agent, whose training-free GRPO is the nearest relative of what is done here: the rows of
`evaluation_data`, one a rollout.

1. Rows of stage "init" were never rolled out: they are counted and left out. Only rows of stage "judged" are graded.
2. `trajectories` is JSON in a string, a list of agents with their messages; older files have `trajectory`.
3. `reward` is the reward where the table has one, else `correct`.
4. Attempts at a task are those with the same question in one `exp_id` (`<experiment>_epoch_<n>`): between epochs the
   experiences in the prompt change.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from core.errors import InputError
from core.importers.attempt import Attempt, Brings, Found, Remark, Seen
from core.importers.dialects import Conversation, conversation
from core.importers.getting import as_number, as_said, as_seen, as_text
from core.importers.lines import set_aside
from core.importers.opened import Opened
from core.importers.traces import unpacked
from core.rollout import Trajectory
from core.store.foreign import MAGIC, columns_of, has_unwritten_changes, rows_of

TABLE = "evaluation_data"
_COLUMNS = {"raw_question", "exp_id", "stage"}


class YoutuAgent:
    """The format."""

    name = "youtu_agent"
    title = "youtu-agent database"
    brings = Brings(reward="yes", repeats="in order", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        if not opened.head.startswith(MAGIC):
            return False
        try:
            with _on_disk(opened) as path:
                return set(columns_of(path, TABLE)) >= _COLUMNS
        except InputError:  # damaged, which `read` tells
            return all(name.encode() in opened.head for name in (TABLE, *_COLUMNS))

    def read(self, opened: Opened) -> Iterator[Found]:
        if has_unwritten_changes(opened.path):
            text = "The database has changes in a journal (-wal) that are not read; close the program that writes it."
            yield Remark(text=text)
        with _on_disk(opened) as path:
            columns = set(columns_of(path, TABLE))
            if not columns >= _COLUMNS:
                raise InputError(f"{opened.name} has no table {TABLE!r} of youtu-agent.")
            row: dict[str, Any] = {}
            try:
                for row in rows_of(path, TABLE):
                    yield from _found(row, "reward" if "reward" in columns else "correct")
            except InputError as e:
                reason = str(e).rstrip(".").replace(path.name, opened.name)
                yield set_aside(f"after row {as_text(row.get('id')) or 0}", reason, b"")


@contextmanager
def _on_disk(opened: Opened) -> Iterator[Path]:
    """The file as SQLite can open it: itself, or a copy that is unpacked."""
    with opened.path.open("rb") as raw:
        packed = raw.read(len(MAGIC)) != MAGIC
    if not packed:
        yield opened.path
        return
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        copy = Path(folder) / "unpacked.db"
        try:
            with opened.stream() as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target)
        except (OSError, EOFError) as e:
            raise InputError(f"{opened.name} is damaged: its compression ends in the middle.") from e
        yield copy


def _found(row: dict[str, Any], reward: str) -> Iterator[Found]:
    place = f"row {as_text(row.get('id'))}"
    stage = as_text(row.get("stage"))
    question = as_text(row.get("raw_question"))
    if stage == "init":
        yield Remark(text="A row of stage 'init' was never rolled out; it was left out.")
        return
    if not question.strip():
        yield set_aside(place, "it has no question", as_said(row))
        return
    told = _conversation_of(row)
    if told is None:
        yield Remark(
            text="The trajectory of a rollout is no JSON that can be read; its messages were left out."
        )
        told = Conversation((), (), "", 0)
    experiment = as_text(row.get("exp_id"))
    facts: dict[str, JsonValue] = {
        "row": as_text(row.get("id")),
        "stage": stage,
        "source": as_text(row.get("source")),
        "level": as_text(row.get("level")),
        "trace_id": as_text(row.get("trace_id")),
        "judged_response": as_text(row.get("judged_response"))[:500],
    }
    cost = as_number(row.get("time_cost"))
    yield Attempt(
        place=place,
        namespace=as_text(row.get("dataset")),
        task_id=as_text(row.get("dataset_index"))[:200] or None,
        question=question,
        expected=as_text(row.get("correct_answer")) or None,
        agent=experiment,
        run=experiment,
        own_id=as_text(row.get("trace_id")) or None,
        trajectory=Trajectory(
            messages=told.messages, steps=told.steps, answer=as_text(row.get("response")) or told.answer
        ),
        scores=_scores_of(row, judged=stage == "judged"),
        reward=reward,
        duration_s=cost if cost is not None and cost >= 0 else None,
        orphans=told.orphans,
        metadata={k: v for k, v in facts.items() if v},
    )


def _conversation_of(row: dict[str, Any]) -> Conversation | None:
    """The messages of all agents of a rollout; None where they are damaged."""
    held = unpacked(row.get("trajectories") or row.get("trajectory") or [])
    if not isinstance(held, list):
        return None
    items: list[Any] = []
    for part in held:
        inner = (
            unpacked(part.get("trajectory")) if isinstance(part, dict) and "trajectory" in part else [part]
        )
        items += inner if isinstance(inner, list) else []
    return conversation(items)


def _scores_of(row: dict[str, Any], *, judged: bool) -> dict[str, Seen]:
    """Reward and verdict; ungraded before the judge has spoken, whatever stands in the columns."""
    scores: dict[str, Seen] = {}
    for name in ("reward", "correct"):
        if name in row:
            value = row[name]
            if name == "correct" and isinstance(value, int):
                value = bool(value)
            scores[name] = as_seen(value) if judged else Seen()
    return scores
