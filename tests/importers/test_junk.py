"""Junk of every type in every place of a record: what becomes an attempt is as valid as if it had been checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers.attempt import Attempt
from core.importers.formats import FORMATS
from tests.importers.making import attempts_of, opened
from tests.importers.mutating import mutations
from tests.importers.test_faults import MAKERS

LONG = ("claude_code", "langfuse", "langsmith", "openai_agents", "openclaw", "otel", "verifiers_v1")
UNCHECKED = [
    *("bfcl", "columnar", "messages", "mini_swe_agent", "verl"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in LONG),
]
"""Formats that build their attempts without a check at run time (`core.record.unchecked`)."""


def with_junk(records: list[Any]) -> Iterator[str]:
    """The lines of a file with junk in one place, for every place."""
    for number, record in enumerate(records):
        for changed in mutations(record):
            lines = [*records[:number], changed, *records[number + 1 :]]
            yield "\n".join(json.dumps(line) for line in lines)


@pytest.mark.parametrize("name", UNCHECKED)
def test_an_attempt_that_is_built_unchecked_would_have_been_let_through(name: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    MAKERS[name](path, 1)
    form = next(f for f in FORMATS if f.recognises(opened(path)))
    read = 0
    for text in with_junk([json.loads(line) for line in path.read_text().splitlines()]):
        path.write_text(text)
        with suppress(InputError):
            for attempt in attempts_of(form, path):
                checked = Attempt.model_validate(attempt.model_dump(), strict=True)
                assert checked.model_dump_json() == attempt.model_dump_json(warnings="error")
                read += 1
    assert read > 50
