"""JSON that is read piece by piece, so that a file of many gigabytes needs no more memory than its largest piece.

Unlike the usual streaming parsers it reads what Python writes: NaN and infinities are floats here, as for `json.loads`.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import IO, Any

CHUNK = 1_000_000
"""Bytes that are read at a time, at least."""

MAX_VALUE = 64_000_000
"""Characters of one value that is read whole; a larger one is refused."""

_EDGE = 16
"""A mistake this near to the end of what was read may only be a word, a number or an escape that goes on."""

_SPACE = re.compile(r"[ \t\r\n]*")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_DECODER = json.JSONDecoder()


def not_utf8_in(value: Any) -> bool:
    """Whether a value that was read holds bytes that are not UTF-8 (worth asking only where some were counted)."""
    try:
        return _NOT_UTF8.search(json.dumps(value, ensure_ascii=False)) is not None
    except RecursionError:
        return True


class JsonStream:
    """One JSON value in a stream of bytes, read from front to back.

    The caller takes what comes next, by `kind`: an object with `members`, a list with `items`, anything with `value`
    or `skip`; within `members` and `items` each value must be taken before the next one. Every method raises
    ValueError with one clause that says what is wrong with the JSON; nothing can be read after that.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.not_utf8 = 0
        """Bytes that are not UTF-8, as far as was read; they stand in the text as half surrogates."""
        self._read1: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        """Reads what can be had, so that nothing is lost of what comes before a damage."""
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._text = ""
        self._at = 0
        self._passed = 0
        """Characters before `_text`."""
        self._ended = False

    @property
    def position(self) -> int:
        """Characters that were taken so far."""
        return self._passed + self._at

    def kind(self) -> str:
        """The first character of what comes next ("{", "[", '"', ...); "" at the end."""
        text, at = self._text, self._at
        if text[at : at + 1] == " ":  # as between most members; the loop below is for all other white space
            self._at = at = at + 1
        found = text[at : at + 1]
        if found > " ":
            return found
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next, each before its value."""
        self._take("{")
        if self.kind() != "}":
            while True:
                key = self.value()
                if not isinstance(key, str):
                    raise ValueError(f"its JSON is damaged at character {self._passed + self._at}")
                self._take(":")
                yield key
                if self.kind() != ",":
                    break
                self._take(",")
        self._take("}")

    def items(self) -> Iterator[int]:
        """The places in the list that comes next, from 0, each before its value."""
        self._take("[")
        place = 0
        if self.kind() != "]":
            while True:
                yield place
                place += 1
                if self.kind() != ",":
                    break
                self._take(",")
                if self.kind() == "]":
                    raise ValueError(
                        f"its JSON is damaged at character {self.position}: nothing follows the comma"
                    )
        self._take("]")

    def value(self) -> Any:
        """What comes next, whole, as `json.loads` reads it."""
        self.kind()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as e:
                goes_on = e.msg.startswith("Unterminated string") or e.pos >= len(self._text) - _EDGE
                if goes_on and self._more():
                    continue
                raise ValueError(self._damage(e, goes_on)) from e
            except RecursionError as e:
                raise ValueError("its JSON is nested too deeply") from e
            except ValueError as e:  # a whole number of more digits than Python reads
                raise ValueError(f"its JSON cannot be read: {e}") from e
            if isinstance(value, int | float) and end >= len(self._text) - _EDGE and self._more():
                continue  # it may go on
            self._at = end
            return value

    def skip(self, depth: int = 2) -> None:
        """Pass over what comes next; down to a depth of lists and objects only a member of them is held at a time."""
        kind = self.kind() if depth else ""
        if kind == "{":
            for _ in self.members():
                self.skip(depth - 1)
        elif kind == "[":
            for _ in self.items():
                self.skip(depth - 1)
        else:
            self.value()

    def outline(self, most: int, depth: int = 3) -> Any:
        """What comes next, with no more than `most` members of each list down to a depth; never raises.

        Of JSON that is damaged or cut off it is what came before that.
        """
        found: list[Any] = []
        with suppress(ValueError):
            self._outline(found.append, most, depth)
        return found[0] if found else None

    def _outline(self, keep: Callable[[Any], None], most: int, depth: int) -> None:
        kind = self.kind() if depth else ""
        if kind == "{":
            members: dict[str, Any] = {}
            keep(members)
            for key in self.members():
                self._outline(partial(members.__setitem__, key), most, depth - 1)
        elif kind == "[":
            items: list[Any] = []
            keep(items)
            for place in self.items():
                if place < most:
                    self._outline(items.append, most, depth - 1)
                else:
                    self.skip()
        else:
            keep(self.value())

    def end(self) -> None:
        """Read to the end of the stream, where a compressed one has its checksum; nothing may follow."""
        if self.kind():
            raise ValueError(f"something follows its JSON, at character {self._passed + self._at + 1}")

    def _damage(self, error: json.JSONDecodeError, cut_off: bool) -> str:
        if cut_off:
            return "its JSON is cut off: it ends in the middle"
        return f"its JSON is damaged at character {self._passed + error.pos + 1}: {error.msg}"

    def _take(self, mark: str) -> None:
        if (found := self.kind()) != mark:
            where = f"at character {self._passed + self._at + 1}: {mark} is missing"
            raise ValueError(
                f"its JSON is damaged {where}" if found else "its JSON is cut off: it ends in the middle"
            )
        self._at += 1

    def _more(self) -> bool:
        """Read on; False at the end. What was taken is forgotten; twice as much as is held is read at a time."""
        held = len(self._text) - self._at
        if self._ended:
            return False
        if held > MAX_VALUE:
            raise ValueError(f"one value of it has more than {MAX_VALUE:,} characters")
        data = self._read(max(CHUNK, held))
        self._ended = not data
        text = self._decode(data, final=self._ended)
        if self._ended and not text:
            return False
        if not text.isascii():
            self.not_utf8 += len(_NOT_UTF8.findall(text))
        self._passed += self._at
        self._text = self._text[self._at :] + text
        self._at = 0
        return True

    def _read(self, size: int) -> bytes:
        """So many bytes, fewer at the end; where a compression is damaged, all that comes before the damage."""
        parts = list[bytes]()
        try:
            while size > 0 and (part := self._read1(size)):
                parts.append(part)
                size -= len(part)
        except (OSError, EOFError, zlib.error) as e:
            if not parts:
                raise ValueError("its compression is damaged, or ends in the middle") from e
        return b"".join(parts)
