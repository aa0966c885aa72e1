"""Task files of any usual shape as tasks: nothing vanishes, every row is a task, a duplicate, or set aside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, JsonValue, model_validator

from core.errors import InputError
from core.importers.columns import find_columns, value_at
from core.importers.fields import (
    answer_of,
    choices_of,
    final_number,
    is_number,
    question_of,
    text_of,
    verifier_of,
)
from core.importers.source import Rejected, bounded, plain, read_bytes, rejected
from core.importers.splits import SHARES, assign_splits, split_named, text_key
from core.importers.tables import Row, read_table
from core.record import Record, canonical_json, content_hash
from core.rollout import Split, Task
from core.settings import VerifierSpec
from core.verifiers import check_task, normalise

MAX_QUESTION = 200_000
"""Characters; a longer question is set aside."""

MAX_METADATA = 20_000
"""Characters of one metadata value as JSON; a longer one is cut, and a note says so."""


OTHERWISE = "--verifier, or a column of that name, says otherwise"

DOMAINS_NAMED = 5


class Duplicate(Record):
    """A row that repeats an earlier one."""

    line: int
    first_line: int
    id: str
    first_id: str


class TaskFile(Record):
    """What was read of a task file: rows = tasks + rejected + duplicate_ids."""

    rows: int
    """Rows of data in the file."""
    tasks: tuple[Task, ...] = ()
    lines: tuple[int, ...] = ()
    """The line that each task came from."""
    rejected: tuple[Rejected, ...] = ()
    duplicate_ids: tuple[Duplicate, ...] = ()
    """Rows left out because a row with the same id and the same content came before."""
    duplicate_texts: tuple[Duplicate, ...] = ()
    """Tasks that ask the same as an earlier one under another id; kept, and put into the same split."""
    columns: tuple[str, ...] = ()
    mapping: dict[str, str] = Field(default_factory=dict)
    """Field of the task -> column it was read from."""
    notes: tuple[str, ...] = ()
    """What was guessed or changed, a sentence each."""

    @model_validator(mode="after")
    def _nothing_vanishes(self) -> Self:
        if len(self.tasks) + len(self.rejected) + len(self.duplicate_ids) != self.rows:
            raise ValueError("the rows of the file do not add up")
        return self


@dataclass
class _Draft:
    """A row that is understood but not yet a task."""

    line: int
    raw: str
    id: str | None
    question: str
    answer: str | None
    domain: str
    split: Split | None
    verifier: VerifierSpec | None
    choices: list[str] | None
    metadata: dict[str, JsonValue]


def read_tasks(
    data: bytes | Path,
    *,
    name: str = "",
    mapping: Mapping[str, str] | None = None,
    verifier: VerifierSpec | None = None,
    domain: str | None = None,
    split: Split | None = None,
    shares: tuple[float, float, float] = SHARES,
    seed: int = 0,
) -> TaskFile:
    """Read tasks from JSONL, JSON, CSV or Parquet; the same file and arguments give the same tasks.

    Args:
        data: the file, or its bytes.
        name: what to call it in messages; its ending helps where the content leaves the format open.
        mapping: field of a task -> column, where the usual names do not fit.
        verifier: for rows that name none; without it one is guessed for each domain, and a note says which.
        domain: for rows that name none (else "general").
        split: for all rows, whatever they say themselves.
        shares: of train, trial and final among the rows that name no split.
        seed: of the split.

    Raises:
        InputError: the file is no table, or an argument does not fit it; one bad row is never an error.
    """
    raw, name = read_bytes(data, name)
    table = read_table(raw, name)
    columns = table.columns
    chosen = find_columns(table.rows, columns, mapping or {}, name)
    notes, aside, drafts = list(table.notes), list(table.rejected), []
    joined = _second_question(chosen, columns, mapping or {}, notes)
    cut: set[str] = set()
    for row in table.rows:
        try:
            drafts.append(_draft(row, chosen, joined, domain or "general", cut))
        except (ValueError, RecursionError) as e:
            reason = "is nested too deeply" if isinstance(e, RecursionError) else str(e)
            aside.append(rejected(row.line, reason, row.raw))
    if cut:
        notes.append(f"long metadata was cut: {', '.join(sorted(cut))}")
    _settle_verifiers(drafts, verifier, notes)
    tasks, lines, more, same_ids = _tasks(drafts)
    tasks, same_texts = _split(tasks, lines, drafts, split, shares, seed, notes)
    return TaskFile(
        rows=len(table.rows) + len(table.rejected),
        tasks=tuple(tasks),
        lines=tuple(lines),
        rejected=tuple(sorted([*aside, *more], key=lambda r: r.line)),
        duplicate_ids=tuple(same_ids),
        duplicate_texts=tuple(same_texts),
        columns=tuple(columns),
        mapping=chosen,
        notes=tuple(notes),
    )


def _second_question(
    chosen: Mapping[str, str], columns: Iterable[str], mapping: Mapping[str, str], notes: list[str]
) -> str | None:
    """The column that completes an instruction (Alpaca's `input`), if there is one."""
    by_form = {c.strip().casefold(): c for c in columns}
    if "question" in mapping or chosen.get("question", "").casefold() != "instruction":
        return None
    second = by_form.get("input")
    if second is None or second in chosen.values():
        return None
    notes.append(f"the question is {chosen['question']!r} followed by {second!r}")
    return second


def _draft(row: Row, chosen: Mapping[str, str], joined: str | None, domain: str, cut: set[str]) -> _Draft:
    """Understand a row.

    Raises:
        ValueError: one clause that says why it cannot be a task.
    """
    question, context = question_of(value_at(row, chosen.get("question")))
    if joined is not None and (second := text_of(value_at(row, joined), "input")):
        question = f"{question}\n\n{second}"
    if len(question) > MAX_QUESTION:
        raise ValueError(f"the question has {len(question)} characters, at most {MAX_QUESTION} are taken")
    answer = answer_of(value_at(row, chosen.get("answer")))
    spec = verifier_of(value_at(row, chosen.get("verifier")))
    metadata = {**context, **_metadata(row, chosen, joined, cut)}
    choices = None
    if (given := value_at(row, chosen.get("choices"))) is not None:
        choices, answer, texts = choices_of(given, answer)
        if choices != texts or spec is not None:
            metadata["choices"] = list(texts)
    named = text_of(value_at(row, chosen.get("split")), "split")
    return _Draft(
        line=row.line,
        raw=row.raw,
        id=text_of(value_at(row, chosen.get("id")), "id"),
        question=question,
        answer=answer,
        domain=text_of(value_at(row, chosen.get("domain")), "domain") or domain,
        split=split_named(named) if named else None,
        verifier=spec,
        choices=choices,
        metadata=metadata,
    )


def _metadata(row: Row, chosen: Mapping[str, str], joined: str | None, cut: set[str]) -> dict[str, JsonValue]:
    """Every column that is no field, as bounded JSON; a column of metadata is laid open."""
    used = {column for field, column in chosen.items() if field != "metadata"} | {joined}
    found: dict[str, Any] = {c: v for c, v in row.values.items() if c not in used and v is not None}
    own = found.pop(chosen.get("metadata", ""), None)
    if isinstance(own, str):
        own = _as_object(own)
    if own is not None:
        found = {**found, **own} if isinstance(own, dict) else {**found, "metadata": own}
    clean: dict[str, JsonValue] = {}
    for key, foreign in found.items():
        value = plain(foreign)
        text = value if isinstance(value, str) else canonical_json(value)
        if len(text) > MAX_METADATA:
            cut.add(str(key)[:40])
        clean[str(plain(key))] = value if len(text) <= MAX_METADATA else bounded(text, MAX_METADATA)
    return clean


def _as_object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _settle_verifiers(drafts: list[_Draft], given: VerifierSpec | None, notes: list[str]) -> None:
    """Give each draft its verifier: its own, else the one that was asked for, else a guess for its domain."""
    open_ones = [d for d in drafts if d.verifier is None]
    guesses = _guessed(open_ones, notes) if given is None else {}
    unlisted = 0
    for draft in open_ones:
        if given is not None:
            draft.verifier = given
        elif draft.choices is not None:
            listed: list[JsonValue] = list(draft.choices)
            draft.verifier = VerifierSpec(kind="choice", options={"choices": listed})
            unlisted += not all(normalise(c) in normalise(draft.question) for c in draft.choices)
        else:
            draft.verifier = guesses[draft.domain]
    if unlisted:
        notes.append(
            f"{unlisted} questions do not list their choices; write them into the question if the model must see them"
        )
    _fill_choices(drafts)
    _cut_solutions(drafts, notes)


def _guessed(drafts: list[_Draft], notes: list[str]) -> dict[str, VerifierSpec]:
    """A guess for each domain, from its answers; a note says what was guessed, why, and how to say otherwise."""
    if with_choices := sum(d.choices is not None for d in drafts):
        notes.append(
            f"guessed the verifier of {with_choices} rows: choice, since they bring choices; {OTHERWISE}"
        )
    domains: dict[str, list[_Draft]] = {}
    for draft in drafts:
        if draft.choices is None:
            domains.setdefault(draft.domain, []).append(draft)
    guesses: dict[str, VerifierSpec] = {}
    alike: dict[tuple[str, str], list[str]] = {}
    for domain, rows in domains.items():
        answers = [_short(d.answer) for d in rows if d.answer is not None]
        numbers = bool(answers) and all(map(is_number, answers))
        why = "every answer is a number" if numbers else "the answers are not all numbers"
        guesses[domain] = VerifierSpec(kind="numeric" if numbers else "text")
        alike.setdefault((guesses[domain].kind, why if answers else "no row has an answer"), []).append(
            domain
        )
    for (kind, why), named in alike.items():
        count = sum(len(domains[domain]) for domain in named)
        shown = ", ".join(named[:DOMAINS_NAMED]) + (" and others" if len(named) > DOMAINS_NAMED else "")
        of = f" of {shown}" if len(alike) > 1 else ""
        notes.append(f"guessed the verifier of {count} rows{of}: {kind}, since {why}; {OTHERWISE}")
    return guesses


def _fill_choices(drafts: list[_Draft]) -> None:
    """A verifier `choice` without choices takes those of its row."""
    for draft in drafts:
        spec = draft.verifier
        if spec is not None and spec.kind == "choice" and "choices" not in spec.options and draft.choices:
            listed: list[JsonValue] = list(draft.choices)
            draft.verifier = VerifierSpec(kind="choice", options={**spec.options, "choices": listed})
        elif spec is not None and spec.kind != "choice" and draft.choices:
            draft.metadata["choices"] = list(draft.choices)


def _cut_solutions(drafts: list[_Draft], notes: list[str]) -> None:
    """Where a number is asked for, a worked solution that ends in `#### 42` (GSM8K) becomes that number."""
    cut = 0
    for draft in drafts:
        spec, number = draft.verifier, final_number(draft.answer or "")
        if (
            spec is None
            or number is None
            or '"kind":"numeric"' not in canonical_json(spec.model_dump(mode="json"))
        ):
            continue
        draft.metadata.setdefault("solution", bounded(draft.answer or "", MAX_METADATA))
        draft.answer = number
        cut += 1
    if cut:
        notes.append(f"{cut} answers were worked solutions; the number after '####' was taken")


def made_id(question: str, answer: str | None, domain: str) -> str:
    """The id of a task whose row names none: the same content has the same one.

    >>> made_id("What is 1 + 1?", "2", "sums")
    't-0c7ea833f3'
    """
    return f"t-{content_hash([question, answer, domain])[:10]}"


def _short(answer: str) -> str:
    return final_number(answer) or answer


def _tasks(drafts: list[_Draft]) -> tuple[list[Task], list[int], list[Rejected], list[Duplicate]]:
    """Build the tasks; an id that comes again is a duplicate or, with other content, set aside."""
    tasks: list[Task] = []
    lines: list[int] = []
    aside: list[Rejected] = []
    duplicates: list[Duplicate] = []
    seen: dict[str, tuple[int, list[Any]]] = {}
    for draft in drafts:
        spec = draft.verifier or VerifierSpec(kind="text")
        content = [draft.question, draft.answer, draft.domain, draft.split, spec.model_dump(mode="json")]
        task_id = draft.id or made_id(draft.question, draft.answer, draft.domain)
        if task_id in seen:
            first, known = seen[task_id]
            if known == content:
                duplicates.append(Duplicate(line=draft.line, first_line=first, id=task_id, first_id=task_id))
            else:
                aside.append(
                    rejected(draft.line, f"id {task_id!r} was already used in line {first}", draft.raw)
                )
            continue
        try:
            task = Task.read(
                {
                    "id": task_id,
                    "question": draft.question,
                    "answer": draft.answer,
                    "verifier": spec,
                    "domain": draft.domain,
                    "split": draft.split or "train",
                    "metadata": draft.metadata,
                },
                where="task",
            )
            check_task(task)
        except InputError as e:
            reason = re.sub(r"^(task|Task '.*?'): ", "", str(e).rstrip("."), count=1, flags=re.DOTALL)
            aside.append(rejected(draft.line, reason, draft.raw))
            continue
        seen[task_id] = (draft.line, content)
        tasks.append(task)
        lines.append(draft.line)
    return tasks, lines, aside, duplicates


def _split(
    tasks: list[Task],
    lines: list[int],
    drafts: list[_Draft],
    forced: Split | None,
    shares: tuple[float, float, float],
    seed: int,
    notes: list[str],
) -> tuple[list[Task], list[Duplicate]]:
    """Put every task into its split, the same text always into one; and list the texts that come again."""
    named = {draft.line: draft.split for draft in drafts}
    given = [forced or named[line] for line in lines]
    keys = [text_key(task.question) for task in tasks]
    chosen = assign_splits(keys, [t.domain for t in tasks], given, shares=shares, seed=seed)
    if forced is None and (free := sum(g is None for g in given)):
        notes.append(f"{free} rows named no split; they were divided with seed {seed}")
    if moved := sum(g is not None and g != c for g, c in zip(given, chosen, strict=True)):
        notes.append(f"{moved} tasks were moved to an earlier split, since it holds the same question")
    first: dict[str, int] = {}
    repeated = []
    for i, key in enumerate(keys):
        j = first.setdefault(key, i)
        if i != j:
            repeated.append(
                Duplicate(line=lines[i], first_line=lines[j], id=tasks[i].id, first_id=tasks[j].id)
            )
    placed = [
        task if task.split == split else task.model_copy(update={"split": split})
        for task, split in zip(tasks, chosen, strict=True)
    ]
    return placed, repeated
