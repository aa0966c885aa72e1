"""A file as it comes in: its bytes, its encoding, its lines, and what of it could not be read."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.importers.json_text import parsed
from core.record import Record

MAX_RAW = 2_000
"""Characters of a rejected row that are kept; how many more there were is said."""

MAX_LINE = 20_000_000
"""Characters of a line; a longer one is rejected unread."""

MAX_FILE_BYTES = 2**30
"""Of a file of tasks or rollouts: it is read whole."""

_MAGIC: list[tuple[bytes, str]] = [
    (b"\x1f\x8b", "is compressed with gzip; unpack it first (gunzip)"),
    (b"\x28\xb5\x2f\xfd", "is compressed with Zstandard; unpack it first (unzstd)"),
    (b"BZh", "is compressed with bzip2; unpack it first (bunzip2)"),
    (b"\xfd7zXZ\x00", "is compressed with xz; unpack it first (unxz)"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook; unpack it, or save the sheet as CSV"),
    (b"SQLite format 3\x00", "is a SQLite database; export the table as CSV or JSONL"),
    (b"%PDF-", "is a PDF document, and no table"),
    (b"version https://git-lfs", "is only a Git LFS pointer; fetch the file itself with git lfs pull"),
]


TAR = 257
"""Where the mark of a tar archive stands."""


def sealed(head: bytes) -> str:
    """Why the beginning of a file can be read by nothing here, as a clause; empty where something may read it."""
    if head[TAR : TAR + 5] == b"ustar":
        return "it is a tar archive; unpack it first (tar -xf)"
    own = (b"PK", b"SQLite")  # formats of rollouts lie in these
    return next(
        (f"it {why}" for magic, why in _MAGIC if head.startswith(magic) and not magic.startswith(own)), ""
    )


class Rejected(Record):
    """A row that was set aside, and why."""

    line: int
    """Physical line that the row begins in, from 1; the row's number in a Parquet file."""
    reason: str
    raw: str
    """The row as it came, cut to `MAX_RAW` characters."""


def rejected(line: int, reason: str, raw: str) -> Rejected:
    """Set a row aside; what is kept of it can be stored and printed."""
    return Rejected(line=line, reason=storable(reason), raw=storable(bounded(raw, MAX_RAW)))


def bounded(text: str, limit: int) -> str:
    """At most `limit` characters of a text, and how many are left out."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def storable(text: str) -> str:
    """The text with U+FFFD in place of half surrogates, which no file and no database can hold."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


_HALF = re.compile("[\ud800-\udfff]")


def printable(name: str) -> str:
    r"""The name of a file on one line, with U+FFFD in place of what cannot be printed.

    >>> printable("a\x1b[2J.jsonl")
    'a\ufffd[2J.jsonl'
    """
    return "".join(c if c.isprintable() else "\ufffd" for c in name)


def has_half_surrogates(text: str) -> bool:
    return not text.isascii() and _HALF.search(text) is not None


def bytes_of(path: Path, most: int, name: str = "") -> bytes:
    """The bytes of a file that has at most so many: a larger one is refused before it is read.

    Args:
        path: of the file.
        most: bytes that are read.
        name: what to call it in messages; without one, its path.

    Raises:
        InputError: it is larger, or cannot be read.
    """
    name = name or str(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # 0 of a pipe, which is read up to the limit
            data = file.read(most + 1) if size <= most else b""
    except FileNotFoundError as e:
        raise InputError(f"There is no file {name!r}.") from e
    except OSError as e:
        raise InputError(f"{name!r} cannot be read: {e.strerror or e}.") from e
    if max(size, len(data)) > most:
        raise InputError(f"{name!r} has {max(size, len(data)):,} bytes; at most {most:,} are read.")
    return data


def read_bytes(data: bytes | Path, name: str) -> tuple[bytes, str]:
    """The bytes of a file, and what to call it in messages.

    Raises:
        InputError: it cannot be read, or holds nothing.
    """
    if isinstance(data, Path):
        name = name or data.name
        data = bytes_of(data, MAX_FILE_BYTES, name)
    name = name or "the file"
    if not data.strip():
        raise InputError(f"{name} is empty.")
    for magic, sentence in _MAGIC:
        if data.startswith(magic):
            raise InputError(f"{name} {sentence}.")
    return data, name


def decode(data: bytes, name: str) -> tuple[str, list[str]]:
    """The text of a file, and a note where the encoding was guessed.

    UTF-8 and UTF-16 by byte order mark, then UTF-8. A file that is UTF-8 but for some bytes keeps these as half
    surrogates, so that the rows that hold them can be rejected; else it is read as Windows-1252 or Latin-1.

    Raises:
        InputError: it is no text.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _strictly(data, "utf-16", name), ["read as UTF-16"]
    elif data[:200].count(0) > len(data[:200]) // 3:
        encoding = "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
        return _strictly(data, encoding, name), ["guessed the encoding: UTF-16 without a byte order mark"]
    text = data.decode("utf-8", "surrogateescape")
    damaged = 0 if text.isascii() else len(_HALF.findall(text))
    if not damaged:
        return text, []
    if sum(not c.isascii() for c in text) > 2 * damaged:
        return text, [f"{damaged} bytes are not UTF-8; the rows that hold them are set aside"]
    if b"\0" in data:
        raise InputError(
            f"{name} is no text file that Winnow can read (JSONL, JSON, CSV) and no Parquet file."
        )
    for encoding, label in (("cp1252", "Windows-1252"), ("latin-1", "Latin-1")):
        try:
            return data.decode(encoding), [f"guessed the encoding: {label}, since it is not UTF-8"]
        except UnicodeDecodeError:
            continue
    raise AssertionError("Latin-1 reads every byte")


def _strictly(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as e:
        raise InputError(
            f"{name} looks like UTF-16 but is damaged at byte {e.start}; save it as UTF-8."
        ) from e


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """(number, line) of every line that is not blank. Only line feeds (or returns alone) end a line.

    `str.splitlines` would also split at characters that JSON allows inside a string (U+2028 and others).
    """
    end = "\n" if "\n" in text else "\r"
    for number, line in enumerate(text.split(end), 1):
        if stripped := line.strip(" \t\r\n\ufeff"):
            yield number, stripped


def parse_line(line: str) -> Any:
    """The JSON value of one line.

    Raises:
        ValueError: one clause that says what is wrong with it.
    """
    if len(line) > MAX_LINE:
        raise ValueError(f"the line has {len(line)} characters, at most {MAX_LINE} are read")
    try:
        return parsed(line)
    except json.JSONDecodeError as e:
        if is_cut_off(e):
            raise ValueError("the line is cut off: its JSON ends in the middle") from e
        raise ValueError(f"not JSON: {e.msg} at character {e.pos + 1}") from e
    except RecursionError as e:
        raise ValueError("the JSON is nested too deeply") from e
    except ValueError as e:  # a whole number of more digits than Python reads
        raise ValueError("it holds a whole number of more digits than can be read") from e


def is_cut_off(error: json.JSONDecodeError) -> bool:
    """Whether a JSON text is no JSON because it ends too early: within a string, a word, a number, or between them.

    >>> try: json.loads('{"a": tru')
    ... except json.JSONDecodeError as e: is_cut_off(e)
    True
    """
    if error.msg.startswith("Unterminated string"):
        return True
    rest = error.doc[error.pos :].strip()
    return not rest or (
        error.pos > 0 and error.msg != "Extra data" and _UNFINISHED.fullmatch(rest) is not None
    )


_UNFINISHED = re.compile(r"tr?u?|fa?l?s?|nu?l?|Na?|-?In?f?i?n?i?t?|-|\.|[eE][+-]?")
"""What may be left of a word or a number that was cut off."""


def plain(value: Any) -> Any:
    """A foreign value as plain JSON: no NaN or infinity (None), no half surrogates, nothing but JSON's types.

    Raises:
        RecursionError: the value is nested too deeply.
    """
    match value:
        case None | bool() | int():
            return value
        case str():
            return storable(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {storable(str(k)): plain(v) for k, v in value.items()}
        case list() | tuple() | set():
            return [plain(v) for v in value]
        case bytes():
            return storable(value.decode("utf-8", "replace"))
        case _:
            return storable(value.isoformat() if hasattr(value, "isoformat") else str(value))
