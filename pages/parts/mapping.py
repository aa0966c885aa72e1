"""Which column of a task file is which field of a task: what was found by name, each to be changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import streamlit as st

from pages.parts import frame, safe, session
from pages.parts.safe import markup

if TYPE_CHECKING:
    from core.workspace.intake import Columns

FIELDS = {
    "question": "what is asked; the one field that is needed",
    "answer": "the right answer",
    "id": "stays with the task for ever",
    "domain": "lessons are kept apart by it",
    "split": "train, trial or final",
    "verifier": "how answers are checked",
    "choices": "of a multiple choice",
    "metadata": "what else is known",
}
NONE = ""
ACROSS = 4


def key_of(field: str) -> str:
    return f"map_{field}"


def forget() -> None:
    """Another file has other columns: begin with what is found by name."""
    session.forget(*map(key_of, FIELDS))


def mapping(found: Columns) -> dict[str, str]:
    """Draw the fields with the column of each; gives what differs from what is found by name ("" = no column)."""
    frame.section("Columns", f"{found.rows:,} rows of {found.format.upper()}; change what was found by name")
    names = [column.name for column in found.columns]
    examples = {column.name: (column.example, column.filled) for column in found.columns}
    chosen: dict[str, str] = {}
    with st.container(key="import_mapping"):
        for row in _rows():
            for field, place in zip(row, st.columns(ACROSS), strict=True):
                with place:
                    chosen[field] = _field(field, found.guess.get(field, NONE), names, examples)
    return {field: column for field, column in chosen.items() if column != found.guess.get(field, NONE)}


def _rows() -> Iterator[list[str]]:
    fields = list(FIELDS)
    for start in range(0, len(fields), ACROSS):
        yield fields[start : start + ACROSS]


def _field(field: str, guess: str, names: list[str], examples: dict[str, tuple[str, int]]) -> str:
    options = [NONE, *dict.fromkeys([*names, *([guess] if guess else [])])]
    column = st.selectbox(
        safe.label(field.capitalize()),
        options,
        index=options.index(guess),
        key=key_of(field),
        format_func=lambda name: name or "none",
        help=safe.label(FIELDS[field]),
    )
    example, filled = examples.get(column, ("", 0))
    if column and example:
        safe.draw(
            markup(
                '<div class="w-example" title="{example}">{example}</div><span class="w-note">in {n} rows</span>',
                example=example,
                n=f"{filled:,}",
            )
        )
    return column
