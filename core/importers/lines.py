"""The JSON objects that a file holds, one at a time; what is none is set aside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from core.errors import InputError
from core.importers.attempt import Aside
from core.importers.json_stream import JsonStream, not_utf8_in
from core.importers.json_text import parsed
from core.importers.opened import RECORDS, Opened
from core.importers.source import MAX_RAW, rejected


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
    spread = is_list(opened) or _first_line(opened) == b"{"
    yield from _members(opened) if spread and not _has_lines(_text_of(opened.head)) else _on_lines(opened)


def is_list(opened: Opened) -> bool:
    """Whether a file begins as a JSON list."""
    return _first_line(opened).startswith(b"[")


def _first_line(opened: Opened) -> bytes:
    return opened.head.lstrip(b" \t\r\n\xef\xbb\xbf").partition(b"\n")[0].rstrip()


def _text_of(head: bytes) -> str:
    return head.decode("utf-8-sig", "surrogateescape").lstrip()


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
    head = _text_of(opened.head)
    if head.startswith("{") and not (_has_lines(head) or _has_long_lines(opened)):
        yield from _whole(opened)
    else:
        yield from objects_of(opened)


def _has_lines(head: str) -> bool:
    """Whether a file begins with objects on lines of their own (the first may be damaged).

    In a list whose members stand on lines of their own only the last has no comma after it: "]" follows. A list that
    is a line is none that is damaged.
    """
    lines = head.split("\n")[:RECORDS]
    if lines[0].startswith("[") and _is_json(lines[0]):
        return False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("{") and _is_json(line):
            return not after.lstrip().startswith("]")
    return False


def _is_json(text: str) -> bool:
    try:
        parsed(text)
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


def _members(opened: Opened) -> Iterator[Piece | Aside]:
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
    value = opened.whole
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
