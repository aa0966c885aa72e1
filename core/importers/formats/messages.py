"""Messages or answers in JSONL, JSON, CSV or Parquet: whatever has no format of its own, read by a mapping.

1. A mapping (`core.importers.mapped`) says where everything stands; what it does not speak of is looked for under the
   usual names, and what was found so is told as a guess.
2. An attempt is its messages, or a question and what came of it (`completion`, text or messages).
3. One score that the mapping names is the reward; of several the user must choose.
4. A row may hold several attempts (`attempts`); they are numbered as they are named.
5. A file that is one list of bare messages is one attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import JsonValue

from core.errors import InputError
from core.importers.attempt import (
    Aside,
    Attempt,
    Brings,
    Found,
    Remark,
    new_attempt,
    new_trajectory,
    new_usage,
)
from core.importers.dialects import Conversation, conversation
from core.importers.getting import as_dict, as_int, as_json, as_number, as_said, as_seen, as_text
from core.importers.lines import Piece, nothing_done, set_aside
from core.importers.mapped import Fields, chosen, found, is_meant, is_there, messages_in, stripped
from core.importers.markup import messages_of, prompt_of
from core.importers.opened import Opened
from core.importers.rows import columns_of, head_rows, rows_of
from core.importers.source import bounded
from core.rollout import Message, Trajectory, Usage

MAX_TEXT = 500
"""Characters of a further member that is kept beside the attempt."""

MAX_QUESTIONS = 20_000_000
"""Characters of questions and system prompts that are remembered."""

SELDOM = ("error",)
"""What a file may well hold nowhere, though its like do: nothing broke off."""

MAX_KEPT = 40
"""Further members that are kept beside the attempt."""


class Messages:
    """The format."""

    name = "messages"
    title = "messages, with a mapping"
    brings = Brings(reward="by a mapping", repeats="by a mapping", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        rows = head_rows(opened)
        return bool(rows) and (
            _are_messages(rows) or is_meant(opened.mapping, rows) or chosen({}, rows) is not None
        )

    def read(self, opened: Opened) -> Iterator[Found]:
        mapping = {k: v for k, v in opened.mapping.items() if k != "weights"}
        rows = head_rows(opened, as_text(mapping.get("rows")))
        if not mapping and _are_messages(rows):
            yield from _of_bare_messages(opened)
            return
        fields = chosen(mapping, rows)
        if fields is None:
            raise InputError(
                f"{opened.name} has no columns whose names tell what holds messages or answers; say it in a mapping "
                f"(its columns are: {', '.join(columns_of(rows)[:30])})."
            )
        if fields.guessed:
            yield Remark(text=_guess(fields))
        _check_columns(opened, fields, rows)
        tasks = _Tasks(fields)
        for piece in rows_of(opened, fields.rows):
            if isinstance(piece, Aside):
                yield piece
            else:
                yield from map(tasks.known, _attempts(piece, fields))
        yield from tasks.remarks()


def _are_messages(rows: list[dict[str, Any]]) -> bool:
    """Whether the records are messages themselves."""
    return len(rows) > 1 and all(
        isinstance(r.get("role"), str) and ("content" in r or "parts" in r) for r in rows
    )


def _of_bare_messages(opened: Opened) -> Iterator[Found]:
    items: list[dict[str, Any]] = []
    for piece in rows_of(opened):
        if isinstance(piece, Aside):
            yield piece
        else:
            items.append(piece.value)
    read = conversation(items)
    yield Remark(text="A file of bare messages is read as one attempt, without a reward.")
    question, system = _asked(read)
    if not question:
        yield set_aside("line 1", "there is no message of a user", as_said(items[:2]))
        return
    if read.silent:
        yield nothing_done("line 1", as_said(items[:2]))
        return
    yield new_attempt(
        place="line 1", question=question, system=system, trajectory=_trajectory(read), orphans=read.orphans
    )


def _guess(fields: Fields) -> str:
    held = [f"{what} = {path}" for what, path in fields.paths.items() if what in fields.guessed]
    held += [f"score = {path}" for path in fields.rewards.values() if "reward" in fields.guessed]
    if "attempts" in fields.guessed:
        held.append(f"attempts = columns that begin with {', '.join(fields.attempts)}")
    return f"Which columns hold what is a guess by their names: {'; '.join(held)}. A mapping says otherwise."


def _said_paths(fields: Fields) -> list[tuple[str, str]]:
    """What the mapping itself says of where things stand."""
    said = [(what, path) for what, path in fields.paths.items() if what not in fields.guessed]
    return said + [("reward", path) for path in fields.rewards.values() if "reward" not in fields.guessed]


def _check_columns(opened: Opened, fields: Fields, rows: Sequence[dict[str, Any]]) -> None:
    """All that the mapping names must be there; the whole file is looked through only where its first rows lack it.

    Raises:
        InputError: no record has it.
    """
    said = [(what, path) for what, path in _said_paths(fields) if what not in SELDOM]
    missing = {path for _, path in said}
    pieces = (piece.value for piece in rows_of(opened, fields.rows) if not isinstance(piece, Aside))
    for row in chain(rows, pieces):
        if not missing:
            return
        for _, record in _records(row, fields.attempts):
            missing -= {path for path in missing if is_there(record, path)}
    for what, path in said if rows else ():
        if path in missing:
            raise InputError(
                f"{opened.name}: the mapping says that {what} stands in {path!r}, but no record has it; name another, "
                f"or leave {what} out of the mapping (its columns are: {', '.join(columns_of(rows)[:30])})."
            )


class _Tasks:
    """Questions by task id, for attempts whose question is only what a user says first.

    Simulated users say the same in other words each time. Attempts of one id, with one system prompt and different
    numbers, are attempts at one task: the first question stands.
    """

    def __init__(self, fields: Fields) -> None:
        self._asked = "question" in fields.paths or "question" in fields.fixed
        self._first: dict[tuple[str, ...], str] = {}
        self._taken: dict[int, int] = {}
        """Number -> hash of the question that stands under it: a record that is there twice is one attempt."""
        self._size = 0
        self._other = False

    def known(self, found: Attempt | Aside) -> Attempt | Aside:
        if isinstance(found, Aside) or self._asked or found.task_id is None or found.repeat is None:
            return found
        task = (found.namespace, found.task_id, found.system)
        number = hash((*task, found.model, found.agent, found.run, found.repeat))
        own = hash(found.question)
        if self._taken.get(number, own) != own or self._size > MAX_QUESTIONS:
            return found
        self._taken[number] = own
        first = self._first.setdefault(task, found.question)
        self._size += len(found.question) + len(found.system)
        if first == found.question:
            return found
        self._other = True
        return found.model_copy(update={"question": first})

    def remarks(self) -> Iterator[Remark]:
        if self._other:
            yield Remark(
                text="Attempts at one task begin with different words of the user, as those of simulated users do; "
                "their task id and number are taken to say that the task is the same."
            )


def _attempts(piece: Piece, fields: Fields) -> Iterator[Attempt | Aside]:
    for number, (name, record) in enumerate(_records(piece.value, fields.attempts)):
        place = f"{piece.place}, {name}" if name else piece.place
        attempt = _attempt(place, record, fields)
        if name and isinstance(attempt, Attempt):
            repeat = number if attempt.repeat is None else attempt.repeat
            kept: dict[str, JsonValue] = {**attempt.metadata, "attempt": name}
            attempt = attempt.model_copy(update={"repeat": repeat, "metadata": kept})
        yield attempt


def _records(row: Mapping[str, Any], attempts: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, record) of every attempt of a row; one without a name where the row is an attempt itself."""
    if not attempts:
        yield "", row
        return
    shared = {k: v for k, v in row.items() if all(stripped(k, each) is None for each in attempts)}
    for each in attempts:
        own = {s: v for k, v in row.items() if (s := stripped(k, each)) is not None}
        if any(v is not None for v in own.values()):
            yield each.strip("*_.- ") or each, {**shared, **own}


def _attempt(place: str, record: Mapping[str, Any], fields: Fields) -> Attempt | Aside:
    read = _conversation(record, fields)
    if read is None:
        return set_aside(place, "there are neither messages nor a completion", as_said(record))
    asked, system = _asked(read)
    task_id = as_text(fields.get(record, "task_id")) or None
    question = _question(record, fields) or asked or (f"task {task_id}" if task_id else "")
    if not question:
        return set_aside(place, "there is no question", as_said(record))
    error = _error(fields.get(record, "error"))
    if read.silent and error is None:
        return nothing_done(place, as_said(record))
    scores = {name: as_seen(found(record, path)) for name, path in fields.rewards.items()}
    expected = fields.get(record, "answer")
    return new_attempt(
        place=place,
        namespace=as_text(fields.get(record, "namespace")),
        task_id=task_id,
        question=question,
        system=as_text(fields.get(record, "system")) or system,
        expected=None if expected is None else as_said(expected) or None,
        model=as_text(fields.get(record, "model")),
        agent=as_text(fields.get(record, "agent")),
        run=as_text(fields.get(record, "run")),
        repeat=as_int(fields.get(record, "attempt")),
        own_id=as_text(fields.get(record, "attempt_id")) or None,
        trajectory=_trajectory(read),
        scores=scores,
        reward=next(iter(scores)) if len(scores) == 1 and "reward" not in fields.guessed else None,
        error=error,
        usage=_usage(record, fields, read),
        duration_s=_not_negative(fields.get(record, "duration_s")),
        orphans=read.orphans,
        metadata=_metadata(record, fields),
    )


def _conversation(record: Mapping[str, Any], fields: Fields) -> Conversation | None:
    """The messages of an attempt; None where it has none."""
    if (messages := messages_in(fields.get(record, "messages"))) is not None:
        return conversation(messages)
    completion = fields.get(record, "completion")
    if completion is None:
        return None
    prompt = fields.get(record, "question")
    before = messages_in(prompt)
    after = messages_in(completion)
    if isinstance(completion, str) and after is None and before is None:
        return conversation(messages_of(prompt_of(as_text(as_said(prompt))), as_text(completion)))
    said_last = after if after is not None else [{"role": "assistant", "content": as_said(completion)}]
    asked = before if before is not None else [{"role": "user", "content": as_said(prompt)}]
    read = conversation(said_last)
    return read._replace(messages=(*conversation(asked).messages, *read.messages))


def _question(record: Mapping[str, Any], fields: Fields) -> str:
    """The question where a member holds it as text; "" where the messages tell it."""
    value = fields.get(record, "question")
    if value is None or messages_in(value) is not None:
        return ""
    return prompt_of(as_text(value)).question if isinstance(value, str) else as_said(value)


def _asked(read: Conversation) -> tuple[str, str]:
    """What the user says before the assistant does, and the system prompt."""
    before: list[Message] = []
    for message in read.messages:
        if message.role == "assistant":
            break
        before.append(message)
    said_by = {role: "\n\n".join(m.content for m in before if m.role == role) for role in ("user", "system")}
    return said_by["user"], said_by["system"]


def _trajectory(read: Conversation) -> Trajectory:
    return new_trajectory(messages=read.messages, steps=read.steps, answer=read.answer)


def _error(value: Any) -> str | None:
    """Why it broke off; null, false, "" and the like are no errors."""
    if isinstance(value, str):
        text = value.strip()
        return (
            None
            if text.lower() in ("", "none", "null", "nan", "n/a", "false", "0")
            else as_text(bounded(text, 500))
        )
    if isinstance(value, dict):
        return as_text(value.get("message")) or (bounded(as_said(value), 500) if value else None)
    return "it broke off" if value is True else None


def _usage(record: Mapping[str, Any], fields: Fields, read: Conversation) -> Usage:
    used = as_dict(fields.get(record, "usage"))
    prompt = _count(fields.get(record, "prompt_tokens"), used.get("prompt_tokens"), used.get("input_tokens"))
    completion = _count(
        fields.get(record, "completion_tokens"), used.get("completion_tokens"), used.get("output_tokens")
    )
    cost = _not_negative(fields.get(record, "cost_usd")) or _not_negative(used.get("cost")) or 0.0
    if not (prompt or completion or cost):
        return new_usage()
    calls = sum(m.role == "assistant" for m in read.messages)
    return new_usage(calls=calls, prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost)


def _count(*values: Any) -> int:
    """The first that is a whole number."""
    return max(next((n for v in values if (n := as_int(v)) is not None), 0), 0)


def _not_negative(value: Any) -> float | None:
    """A number of the file, also where a CSV file has it as text; None for all else."""
    number = as_number(value) if not isinstance(value, str) else as_seen(value).value
    return number if number is not None and number >= 0 else None


def _metadata(record: Mapping[str, Any], fields: Fields) -> dict[str, JsonValue]:
    """What is kept beside: what the mapping names, else members that are short and not used otherwise."""
    if fields.metadata is not None:
        return {as_text(path): as_json(found(record, path)) for path in fields.metadata}
    used = {path.split(".")[0] for path in (*fields.paths.values(), *fields.rewards.values())}
    kept: dict[str, JsonValue] = {}
    for name, value in record.items():
        short = isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= MAX_TEXT)
        if short and name not in used and len(kept) < MAX_KEPT:
            kept[as_text(name)] = as_json(value)
    return kept
