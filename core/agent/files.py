"""The file tools: list, read, write and search in the scratch folder of the rollout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic import ConfigDict, Field

from core.agent.scratch import MAX_ENTRIES, Scratch
from core.agent.tool import Done, Tool, ToolError, read_arguments, schema_of
from core.record import Record

MAX_HITS = 100
"""Lines that a search gives."""

_LINE = 200
"""Characters of a line that a search shows."""


class _Strict(Record):
    model_config = ConfigDict(strict=True)


class _Listing(_Strict):
    pass


class _Reading(_Strict):
    path: str = Field(description="Path below the working folder.")
    first_line: int = Field(default=1, ge=1, description="Where to begin, from 1.")
    lines: int = Field(default=400, ge=1, le=2000, description="How many lines at most.")


class _Writing(_Strict):
    path: str = Field(description="Path below the working folder; folders are made as needed.")
    text: str = Field(description="The whole new content.")


class _Searching(_Strict):
    text: str = Field(min_length=1, description="Plain text that a line must hold, in any case.")


def file_tools(scratch: Scratch) -> list[Tool]:
    """The four tools on one folder."""

    def listing(_: _Listing) -> str:
        lines = [f"{e.path}  {'a link' if e.link else f'{e.size:,} bytes'}" for e in scratch.entries()]
        if len(lines) == MAX_ENTRIES:
            lines.append(f"[the first {MAX_ENTRIES} are shown]")
        return "\n".join(lines) or "The folder is empty."

    def reading(wanted: _Reading) -> str:
        lines = scratch.read(wanted.path).splitlines()
        shown = lines[wanted.first_line - 1 : wanted.first_line - 1 + wanted.lines]
        if lines and not shown:
            raise ToolError(f"{wanted.path!r} has only {len(lines)} lines")
        rest = len(lines) - (wanted.first_line - 1) - len(shown)
        return "\n".join([*shown, *([f"[{rest} more lines]"] if rest else [])])

    def writing(wanted: _Writing) -> str:
        return f"Wrote {scratch.write(wanted.path, wanted.text):,} bytes to {wanted.path}."

    def searching(wanted: _Searching) -> str:
        hits: list[str] = []
        for entry in scratch.entries():
            try:
                lines = [] if entry.link else scratch.read(entry.path).splitlines()
            except ToolError:  # no text, or too large: nothing to be found in it
                continue
            for number, line in enumerate(lines, start=1):
                if wanted.text.casefold() in line.casefold():
                    hits.append(f"{entry.path}:{number}: {line[:_LINE]}")
                    if len(hits) == MAX_HITS:
                        return "\n".join([*hits, f"[the first {MAX_HITS} hits are shown]"])
        return "\n".join(hits) or "Nothing found."

    return [
        _tool("list_files", "List the files of your working folder.", _Listing, listing),
        _tool("read_file", "Read a text file of your working folder.", _Reading, reading),
        _tool("write_file", "Write a text file into your working folder.", _Writing, writing),
        _tool(
            "search_files",
            "Find the lines that hold a text, in all files of your folder.",
            _Searching,
            searching,
        ),
    ]


def _tool(name: str, description: str, arguments: type[Any], work: Callable[[Any], str]) -> Tool:
    async def call(parameters: dict[str, Any], _: float) -> Done:
        return Done(await asyncio.to_thread(work, read_arguments(arguments, parameters)))

    return Tool(name, description, schema_of(arguments), call)
