"""A text that a person gives: on the command line, in a file, or on standard input."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import click

from core.errors import InputError

MAX_TEXT_BYTES = 2**20


def with_text(help_line: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options --text and --text-file for a command, which gets `text`: the one that was given, or None."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        @click.option("--text", help=f"{help_line} A single - reads it from standard input.")
        @click.option(
            "--text-file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Read it from a file instead; the line break at its end is not part of it.",
        )
        @functools.wraps(command)
        def gathered(*given: object, text: str | None, text_file: Path | None, **options: object) -> None:
            command(*given, text=_given(text, text_file), **options)

        return gathered

    return wrap


def _given(text: str | None, file: Path | None) -> str | None:
    """Exactly the text that was given; of a file and of standard input without the line break at its end.

    Raises:
        InputError: the file cannot be read, holds no UTF-8 text, or is far too long.
    """
    from core.importers.source import bytes_of

    if text is not None and file is not None:
        raise click.UsageError("Give the text with --text or with --text-file, not with both.")
    if file is None and text != "-":
        return text
    if file is not None and not file.is_file():
        raise InputError(f"There is no file {file}.")
    where = str(file) if file else "standard input"
    data = bytes_of(file, MAX_TEXT_BYTES) if file else sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(f"What came on {where} has more than {MAX_TEXT_BYTES:,} bytes, which is no lesson.")
    try:
        found = data.decode("utf-8-sig" if file else "utf-8")
    except UnicodeDecodeError as e:
        raise InputError(f"What came from {where} is not UTF-8 text.") from e
    return found.removesuffix("\n").removesuffix("\r")
