"""Tool: what an agent may call, and how what comes back is made fit to be stored, shown and sent on."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from core.errors import InputError
from core.record import Record

A = TypeVar("A", bound=Record)

MAX_OUTPUT = 16_000
"""Characters of one tool's output that are kept and shown to the model."""

MAX_ERROR = 1_000
"""Characters of one error."""

_HEAD = 0.75
"""Share of a cut text that is taken from its beginning; the rest is its end, where errors stand."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Done:
    """What a tool call gave."""

    output: str
    retries: int = 0
    """How often the tool tried again by itself."""


class ToolError(Exception):
    """A call that failed. The agent is told, and may do better; it is not an error of the run."""

    def __init__(self, message: str, output: str = "", retries: int = 0) -> None:
        super().__init__(message)
        self.output = output
        self.retries = retries


@dataclass(frozen=True)
class Tool:
    """One function that the model may call."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of its parameters, an object."""
    call: Callable[[dict[str, Any], float], Awaitable[Done]]
    """Called with the parameters and the seconds that are left; raises ToolError where it fails."""
    secrets: tuple[str, ...] = ()
    """What it was given and nobody else may see: hidden in what it gives."""


def schema_of(arguments: type[Record]) -> dict[str, Any]:
    """The JSON Schema of a tool's parameters, without what only Python's reader needs."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
    return schema


def read_arguments(arguments: type[A], parameters: dict[str, Any]) -> A:
    """The parameters as the tool wants them.

    Raises:
        ToolError: a name or a type is wrong; the sentence says which.
    """
    try:
        return arguments.read(parameters, where="wrong arguments")
    except InputError as e:
        raise ToolError(str(e)) from e


def clean(text: str) -> str:
    r"""The text as it may be stored and sent: half surrogates and control characters become U+FFFD.

    >>> clean("a\x1b[31mb\ud800c\r\nd")
    'a�[31mb�c\nd'
    """
    whole = text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )  # halves that belong together join
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", whole.replace("\r\n", "\n"))


def bounded(text: str, limit: int = MAX_OUTPUT) -> str:
    r"""The text, or its beginning and its end with a mark between them that says how much is left out.

    >>> bounded("x" * 50, 12)
    'xxxxxxxxx\n[... 38 characters left out ...]\nxxx'
    """
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD)
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit:,} characters left out ...]\n{text[len(text) - tail :]}"
