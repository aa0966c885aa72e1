"""A recorded file that is open for reading: by lines, as one JSON value, as an archive; never all in memory."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from core.errors import InputError
from core.importers.json_stream import JsonStream
from core.importers.json_text import parsed, quick
from core.importers.source import MAX_LINE, has_half_surrogates, is_cut_off, parse_line

HEAD = 1_000_000
"""Bytes that are looked at to recognise a format."""

RECORDS = 20
"""Records that are looked at to recognise a format: the first may be damaged."""

BINARY = 512
"""Bytes of the head in which a NUL tells that it is no text: the headers of archives and databases have one."""

PORTION = 2**16
"""Bytes that are read, or unpacked, at once."""

SMALL = 16_000_000
"""Bytes of a file that is parsed whole to recognise its format."""

MAX_WHOLE = 2**30
"""Bytes of a file that is one JSON value, after unpacking; a larger one is refused."""


DAMAGED = (OSError, EOFError, zlib.error)
"""What reading a damaged file may raise."""


class _Gunzipped(io.RawIOBase):
    """What a gzip file holds; where its compression is damaged, all that comes before the damage was given."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _AsUtf8(io.RawIOBase):
    """A UTF-16 file as UTF-8; what cannot be decoded is U+FFFD."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = self._file.read(len(buffer))
            self._left = self._decoder.decode(chunk, not chunk).encode()
            if not chunk:
                break
        taken, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


class SeveralValuesError(InputError):
    """A file holds more than one JSON value."""


class Opened:
    """One file of recorded rollouts. Gzip is unpacked on the way; `path` is the file on disk."""

    def __init__(
        self,
        path: Path,
        name: str = "",
        root: Path | None = None,
        mapping: Mapping[str, Any] | None = None,
    ) -> None:
        """
        Args:
            path: of the file on disk.
            name: what to call it in messages and in the workspace; without one, its file name.
            root: the folder that the user named, when the file was found in it: nothing outside it is read.
            mapping: which columns hold what, as the user says; every format may look at it.
        """
        self.path = path
        self.name = name or path.name
        self.root = root or path.parent
        self.mapping: Mapping[str, Any] = mapping or {}
        self.used: set[Path] = set()
        """Neighbouring files that were found by `beside`: they belong to this one."""
        self.encoding = ""
        """How its text is encoded, where that is not UTF-8 (it is passed on as UTF-8); known once it was read."""
        self.not_utf8 = False
        """Whether bytes of it are not UTF-8; known once it was read as a `whole`."""
        self.damaged = False
        """Whether the compression is damaged within the head; known once that was read."""
        self._raw: IO[bytes] | None = None

    @property
    def file_name(self) -> str:
        """The name of the file, without the ending that gzip gives it."""
        return self.path.name.removesuffix(".gz")

    @property
    def position(self) -> int:
        """How many bytes of the file on disk the newest `stream` has read."""
        return self._raw.tell() if self._raw is not None and not self._raw.closed else 0

    def stream(self) -> io.BufferedReader[Any]:
        """The bytes of the file from the beginning, unpacked; UTF-16 with a byte order mark as UTF-8.

        Raises:
            InputError: it cannot be read.
        """
        try:
            raw = io.BufferedReader(self.path.open("rb", buffering=0), PORTION)
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
        except OSError as e:
            raise InputError(f"{self.name!r} cannot be read: {e.strerror or e}.") from e
        self._raw = raw
        file: io.BufferedReader[Any] = (
            io.BufferedReader(_Gunzipped(gzip.GzipFile(fileobj=raw)), PORTION) if zipped else raw
        )
        try:
            mark = file.peek(2)[:2]
        except DAMAGED:  # damaged: whoever reads it is told
            return file
        if mark not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return file
        self.encoding = "UTF-16"
        return io.BufferedReader(_AsUtf8(file))

    @cached_property
    def head(self) -> bytes:
        """The first `HEAD` bytes, unpacked; what is damaged ends it."""
        head, left = list[bytes](), HEAD
        with self.stream() as file:
            try:
                while left and (more := file.read1(min(PORTION, left))):
                    head.append(more)
                    left -= len(more)
            except DAMAGED:
                self.damaged = True
        return b"".join(head)

    @cached_property
    def whole(self) -> Any:
        """The file as one JSON value (NaN and infinities as Python's floats), parsed once.

        Bytes that are not UTF-8 stand in it as half surrogates (`not_utf8`).

        Raises:
            InputError: it is too large, no JSON, or cut off.
        """
        with self.stream() as file:
            try:
                data = file.read(MAX_WHOLE + 1)
            except DAMAGED as e:
                raise InputError(f"{self.name} is damaged: its compression ends in the middle.") from e
        if len(data) > MAX_WHOLE:
            raise InputError(
                f"{self.name} is one JSON value of more than {MAX_WHOLE:,} bytes; split it, or use JSONL."
            )
        with suppress(ValueError):
            return quick(data)
        text = data.decode("utf-8-sig", "surrogateescape")
        self.not_utf8 = has_half_surrogates(text)
        try:
            return json.loads(text)
        except json.JSONDecodeError as e:
            if e.msg == "Extra data":
                raise SeveralValuesError(
                    f"{self.name} is not one JSON value: something follows in line {e.lineno}."
                ) from e
            what = (
                "is cut off: its JSON ends in the middle"
                if is_cut_off(e)
                else f"is no JSON: {e.msg} in line {e.lineno}"
            )
            raise InputError(f"{self.name} {what}.") from e
        except RecursionError as e:
            raise InputError(f"{self.name} holds JSON that is nested too deeply.") from e
        except ValueError as e:
            raise InputError(f"{self.name} holds JSON that cannot be read: {str(e)[:200]}.") from e

    @cached_property
    def records(self) -> list[Any]:
        """The first values of the file that can be parsed, at most `RECORDS`: of JSONL the lines, of a JSON list its
        members, of a JSON object itself. Empty for what is no JSON. Never raises.
        """
        binary = b"\0" in self.head[:BINARY] and not _TEXT.match(self.head)
        return [] if binary else _records(self)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number from 1, line) of every line that is not blank, split at line feeds alone.

        A line of more than `MAX_LINE` bytes comes as its first `MAX_LINE` + 1, which `parse` then refuses.

        Raises:
            InputError: the compression is damaged; what came before was yielded.
        """
        number = 0
        with self.stream() as file:
            while True:
                try:
                    line = file.readline(MAX_LINE + 1)
                    while (
                        len(line) > MAX_LINE
                        and not line.endswith(b"\n")
                        and (more := file.readline(MAX_LINE))
                    ):
                        if more.endswith(b"\n"):
                            break
                except DAMAGED as e:
                    raise InputError(
                        f"{self.name} is damaged: its compression ends in the middle, after line {number}."
                    ) from e
                if not line:
                    return
                number += 1
                if stripped := line.strip(b" \t\r\n\xef\xbb\xbf"):
                    yield number, stripped

    def parse(self, line: bytes) -> Any:
        """The JSON value of a line.

        Raises:
            ValueError: one clause that says what is wrong with it.
        """
        try:
            return quick(line) if len(line) <= MAX_LINE else _parsed_with_care(line)
        except ValueError:
            return _parsed_with_care(line)

    def beside(self, *names: str) -> Path | None:
        """A file beside this one (or up or down: "../config.json"), the first of these names that is there, as it is or
        compressed with gzip (`Opened` reads both).

        Nothing outside the folder that the user named is found.
        """
        for name in (each for plain in names for each in (plain, f"{plain}.gz")):
            path = (self.path.parent / name).resolve()
            if path.is_file() and path.is_relative_to(self.root.resolve()):
                self.used.add(path)
                return path
        return None


_TEXT = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
"""How JSON begins, and no archive and no database."""


def _parsed_with_care(line: bytes) -> Any:
    try:
        return parse_line(line.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise ValueError(f"the line is not UTF-8 (byte {e.start + 1} of it)") from e


def _records(opened: Opened) -> list[Any]:
    text = opened.head.decode("utf-8-sig", "surrogateescape").lstrip()
    if text[:1] == "[" and (members := _members(text)):
        return members
    lines = _on_lines(text)
    if text[:1] == "{" and not any(isinstance(line, dict) for line in lines):
        return _objects(opened) or lines
    return lines


def _on_lines(text: str) -> list[Any]:
    """Objects and lists that are lines; within a value that is spread over lines they are indented."""
    found: list[Any] = []
    for line in text.split("\n"):
        if line[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                found.append(parsed(line))
        if len(found) == RECORDS:
            break
    return found


def _members(text: str) -> list[Any]:
    """The members of the list that a text begins with."""
    decoder, at, members = json.JSONDecoder(), 1, list[Any]()
    while len(members) < RECORDS:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            member, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        members.append(member)
    return members


def _objects(opened: Opened) -> list[Any]:
    """The object that a file is, or the first ones where several follow each other; of a large one, or one that is cut
    off, its outline: lists have no more than `RECORDS` members in it.
    """
    try:
        with opened.stream() as file:
            small = len(file.read(SMALL + 1)) <= SMALL
        if small:
            return [opened.whole]
    except (*DAMAGED, InputError):
        pass
    found: list[Any] = []
    with opened.stream() as file:
        stream = JsonStream(file)
        while len(found) < RECORDS and isinstance(part := stream.outline(RECORDS), dict):
            found.append(part)
    return found
