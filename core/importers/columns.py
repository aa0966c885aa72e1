"""Which column of a file is which field of a task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.importers.tables import Row

SYNONYMS: dict[str, tuple[str, ...]] = {
    "question": (
        "question", "problem", "problem_statement", "query", "instruction", "prompt", "input", "text", "messages",
        "task", "goal", "sentence", "utterance",
    ),
    "answer": (
        "answer", "final_answer", "expected_answer", "expected", "ground_truth", "reward_model.ground_truth", "gold",
        "gold_answer", "gt", "target", "label", "reference", "reference_answer", "correct_answer", "answerkey",
        "answer_key", "solution", "output",
    ),
    "id": (
        "id", "task_id", "uid", "uuid", "idx", "index", "unique_id", "problem_id", "question_id", "instance_id",
        "example_id", "sample_id", "key",
    ),
    "domain": (
        "domain", "category", "subject", "topic", "data_source", "family", "task_type", "dataset", "type",
    ),
    "split": ("split", "partition", "fold"),
    "verifier": ("verifier", "checker"),
    "choices": ("choices", "options", "candidates"),
    "metadata": ("metadata", "meta"),
}  # fmt: skip
"""Names that a field's column goes by, the likeliest first. A dot leads into a nested object."""


def find_columns(
    rows: Sequence[Row], columns: Sequence[str], mapping: Mapping[str, str], name: str
) -> dict[str, str]:
    """Choose a column for each field: as `mapping` says ("" = none), else by its usual names.

    Raises:
        InputError: the mapping names what is not there, or there is no column for the question.
    """
    known = ", ".join(columns) or "none"
    for wanted, column in mapping.items():
        if wanted not in SYNONYMS:
            raise InputError(f"A task has no field {wanted!r} to map; it has: {', '.join(SYNONYMS)}.")
        if column and column not in columns and not any(_has(row, column) for row in rows):
            raise InputError(f"{name} has no column {column!r} for the {wanted}; its columns are: {known}.")
    chosen = {wanted: column for wanted, column in mapping.items() if column}
    by_form = {_form(column): column for column in reversed(columns)}
    for wanted, names in SYNONYMS.items():
        if wanted in mapping:
            continue
        for candidate in names:
            column = by_form.get(candidate, candidate if "." in candidate else "")
            free = column and column not in chosen.values()
            if free and (column in columns or any(_has(row, column) for row in rows)):
                chosen[wanted] = column
                break
    if rows and "question" not in chosen:
        raise InputError(
            f"{name} has no column that looks like the question; name it with a mapping (its columns are: {known})."
        )
    return chosen


def value_at(row: Row, column: str | None) -> Any:
    """The row's value in a column, or inside of one ("reward_model.ground_truth"); None where there is none."""
    if column is None:
        return None
    if column in row.values:
        return row.values[column]
    value: Any = row.values
    for part in column.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _has(row: Row, column: str) -> bool:
    return value_at(row, column) is not None


def _form(column: str) -> str:
    return re.sub(r"[\W_]+", "_", column.strip().casefold()).strip("_")
