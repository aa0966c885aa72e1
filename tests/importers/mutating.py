"""The same foreign value with junk of another type in each of its places, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from core.importers.attempt import Aside, Attempt, TraceFormat
from tests.importers.making import opened

JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    float("nan"),
    1e400,
    "x",
    "\ud83d \x00",
    [],
    {},
    [None, "x", [[]]],
    {"a": {"b": [1]}},
)
LEFT_OUT = object()


def mutations(value: Any) -> Iterator[Any]:
    """The value with one place replaced by junk, or left out, for every place and every junk."""
    for path in _paths(value):
        for junk in (*JUNK, LEFT_OUT):
            yield _with(value, path, junk)


def read_lines(form: TraceFormat, path: Path, values: list[Any]) -> tuple[int, int]:
    """Write the values on lines and read them: how many became attempts, which can be stored, and how many asides."""
    path.write_text("\n".join(json.dumps(value) for value in values))
    found = list(form.read(opened(path)))
    attempts = [f for f in found if isinstance(f, Attempt)]
    assert as_stored(attempts) == attempts
    return len(attempts), sum(isinstance(f, Aside) for f in found)


def as_stored(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The attempts as they are read back: a value of a type that is not the field's does not come back as it was."""
    return [Attempt.model_validate_json(attempt.model_dump_json()) for attempt in attempts]


def _paths(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*so_far, key)
        yield from _paths(inner, (*so_far, key))


def _with(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """A copy along the path alone; the rest is shared."""
    if not path:
        return junk
    changed = dict(value) if isinstance(value, dict) else list(value)
    new = _with(value[path[0]], path[1:], junk)
    if new is LEFT_OUT:
        del changed[path[0]]
    else:
        changed[path[0]] = new
    return changed
