"""The JSON objects that a file holds, one at a time; what is none is set aside."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from core.errors import InputError
from core.importers.attempt import Aside
from core.importers.json_stream import JsonStream, not_utf8_in
from core.importers.json_text import parsed
from core.importers.opened import RECORDS, Opened, SeveralValuesError
from core.importers.source import MAX_RAW, rejected

_ALONE = re.compile(rb"\{\s*(?:\n|\Z)")
"""An object whose brace is all that is on the first line."""


class Piece(NamedTuple):
    """One object of a file."""

    place: str
    """For people: "line 3", "record 3"."""
    number: int
    """From 1."""
    size: int
    """Bytes, or characters, that it took in the file."""
    value: dict[str, Any]


def objects_of(opened: Opened) -> Iterator[Piece | Aside]:
    """The objects of a file that has one on each line, spread over lines, or that is a list of them, in order.

    Where a compressed file is damaged, what came before stands, and the rest is one `Aside`.

    Raises:
        InputError: the file cannot be read at all.
    """
    head = _start_of(opened)
    spread = head[:1] == b"[" or _ALONE.match(head) is not None
    yield from members_of(opened) if spread and not _has_lines(head) else _on_lines(opened)


def is_list(opened: Opened) -> bool:
    """Whether a file begins as a JSON list."""
    return _start_of(opened)[:1] == b"["


def _start_of(opened: Opened) -> bytes:
    """The head of a file, from where its text begins."""
    return opened.head.removeprefix(codecs.BOM_UTF8).lstrip()


def _on_lines(opened: Opened) -> Iterator[Piece | Aside]:
    number = 0
    try:
        for number, line in opened.lines():
            place = f"line {number}"
            try:
                value = opened.parse(line)
                if not isinstance(value, dict):
                    raise ValueError("the line is no JSON object")
            except ValueError as e:
                yield set_aside(place, str(e), line)
            else:
                yield Piece(place, number, len(line), value)
    except InputError as e:
        if number == 0:
            raise
        yield set_aside(f"after line {number}", str(e).rstrip("."), b"")


def records_of(opened: Opened) -> Iterator[Piece | Aside]:
    """The objects of a file that is JSONL, one JSON list, or one JSON object, in order.

    Raises:
        InputError: the file cannot be read at all.
    """
    head = _start_of(opened)
    if head[:1] == b"{" and not (_has_lines(head) or _has_long_lines(opened)):
        yield from _whole(opened)
    else:
        yield from objects_of(opened)


def _has_lines(head: bytes) -> bool:
    """Whether a file begins with objects on lines of their own (the first may be damaged).

    In a list whose members stand on lines of their own only the last has no comma after it, nor before the next one:
    "]" follows. A list that is a line is none that is damaged.
    """
    lines = [line for line in map(bytes.strip, _first_lines(head)) if line]
    in_list = lines[:1] == [b"["]
    if lines and lines[0][:1] == b"[" and _is_json(lines[0]):
        return False
    for line, after in pairwise((*lines, b"")):
        if line[:1] == b"{":
            if in_list and line.endswith(b","):
                return False
            if _is_json(line):
                return after[:1] != b"]" and not (in_list and after[:1] == b",")
    return False


def _first_lines(head: bytes) -> list[bytes]:
    """The first `RECORDS` lines; the rest is not copied, it may be long."""
    lines, start = list[bytes](), 0
    while len(lines) < RECORDS and start >= 0:
        end = head.find(b"\n", start)
        lines.append(head[start:end] if end >= 0 else head[start:])
        start = end + 1 if end >= 0 else -1
    return lines


def _is_json(line: bytes) -> bool:
    try:
        parsed(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return False
    return True


def _has_long_lines(opened: Opened) -> bool:
    """Whether the first line, longer than the head is, is an object by itself."""
    if b"\n" in opened.head:
        return False
    try:
        _, line = next(opened.lines())
        return isinstance(opened.parse(line), dict)
    except (StopIteration, InputError, ValueError):
        return False


def nothing_done(place: str, raw: bytes | str) -> Aside:
    """A record that tells nothing of what the model did: with whatever score, it would be an invented attempt."""
    return set_aside(place, "nothing is recorded of what the model did: no answer and no tool call", raw)


def members_of(opened: Opened) -> Iterator[Piece | Aside]:
    """The members of a list, or of several, and objects that were written one after the other."""
    number, place = 0, "record 1"
    with opened.stream() as file:
        stream = JsonStream(file)
        try:
            for _ in _places(stream):
                before, number = stream.position, number + 1
                place = f"record {number}"
                value = stream.value()
                if stream.not_utf8 and not_utf8_in(value):
                    yield set_aside(place, "bytes of it are not UTF-8", repr(value)[:MAX_RAW])
                elif isinstance(value, dict):
                    yield Piece(place, number, stream.position - before, value)
                else:
                    yield set_aside(place, "the record is no JSON object", repr(value)[:MAX_RAW])
                place = f"after record {number}"
            stream.end()
        except ValueError as e:
            if number == 0:
                raise InputError(f"{opened.name} cannot be read: {e}.") from e
            yield set_aside(place, f"nothing more is read: {e}", b"")


def _places(stream: JsonStream) -> Iterator[int]:
    while (kind := stream.kind()) in ("[", "{"):
        yield from stream.items() if kind == "[" else (0,)


def _whole(opened: Opened) -> Iterator[Piece | Aside]:
    """The object that a file is; or several, each over many lines."""
    try:
        value = opened.whole
    except SeveralValuesError:
        yield from members_of(opened)
        return
    if opened.not_utf8:
        yield set_aside("line 1", "bytes of it are not UTF-8", repr(value)[:MAX_RAW])
    elif isinstance(value, dict):
        yield Piece("line 1", 1, len(opened.head), value)


def set_aside(place: str, reason: str, raw: bytes | str) -> Aside:
    """A record that could not be read; what is kept of it can be stored and printed.

    Args:
        place: where it stands.
        reason: one clause without a full stop.
        raw: the record as it came.
    """
    text = raw[: MAX_RAW * 4].decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    kept = rejected(0, reason, text)
    return Aside(place=place, reason=kept.reason, raw=kept.raw)
