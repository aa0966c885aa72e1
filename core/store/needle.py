"""A text that is looked for in every form that files may hold it in.

Each of its characters may stand for itself, in the other case, escaped as in JSON (at any depth of JSON inside JSON) or
percent-encoded as in addresses; the whole may be composed or decomposed Unicode, UTF-8 or UTF-16, or lie inside base64.
Not found: other encryptions, compressions and paraphrases, and texts that are broken up by what stands between.
"""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import AnyStr, NamedTuple

Span = tuple[int, int]
"""From the first character to the one after the last."""

SLASHES = "\\"
"""One or more backslashes: how many depends on how deep the JSON is."""
NAMED = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f", '"': '"', "/": "/", "'": "'"}
BASE64_LEAST = 8
"""Characters of base64 that a text must determine to be looked for in it: fewer would be found by chance."""
WINDOW = 8 << 20
"""Bytes of a file that are looked at together."""
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")

Form = tuple[str, ...]
"""Parts, each `SLASHES` or literal."""


class Needle:
    """One text to look for.

    Args:
        text: at least one character.
        exact_case: whether the other case is another text.
    """

    def __init__(self, text: str, *, exact_case: bool = False) -> None:
        self.text = text
        self.exact_case = exact_case

    @property
    def longest(self) -> int:
        """Bytes that an occurrence takes at most, but for endless backslashes."""
        return 16 * 4 * len(self.text)

    def spans(self, text: str) -> list[Span]:
        """Where it is; those that overlap are joined, so that no rest of one is left over."""
        return _joined(_overlapping(self._in_text, text)) if self.found(text) else []

    def found(self, text: str) -> bool:
        return self._clues.fit(text, text.lower(), str) and self._in_text.search(text) is not None

    def count_bytes(self, data: bytes) -> int:
        """How often it is in the bytes of a file, in any encoding."""
        low, count = data.lower(), 0
        for encoding, pattern in self._in_bytes.items():
            if self._clues.fit(data, low, partial(str.encode, encoding=encoding)):
                count += sum(1 for _ in pattern.finditer(data))
        return count

    @cached_property
    def _clues(self) -> _Clues:
        return _Clues.of(_normal_forms(self.text), _base64_cores(self.text))

    @cached_property
    def _in_text(self) -> re.Pattern[str]:
        return re.compile(self._source(re.escape, "(?:\\\\)+"))

    @cached_property
    def _in_bytes(self) -> dict[str, re.Pattern[bytes]]:
        found = {}
        for encoding in ENCODINGS:

            def encoded(part: str, encoding: str = encoding) -> str:
                return re.escape(part.encode(encoding)).decode("latin-1")

            source = self._source(encoded, f"(?:{encoded(SLASHES)})+")
            found[encoding] = re.compile(source.encode("latin-1"), re.DOTALL)
        return found

    def _source(self, literal: Callable[[str], str], slashes: str) -> str:
        """The pattern, with a function that writes a literal part, and what stands for slashes."""

        def written(form: Form) -> str:
            return "".join(slashes if part == SLASHES else literal(part) for part in form)

        def one_of(forms: Iterable[Form]) -> str:
            return f"(?:{'|'.join(dict.fromkeys(map(written, forms)))})"

        whole = [
            "".join(one_of(_forms(c, self.exact_case)) for c in text) for text in _normal_forms(self.text)
        ]
        inside = ["".join(one_of(_base64_forms(c)) for c in core) for core in _base64_cores(self.text)]
        return "|".join([*whole, *inside])


def count_in(file: io.BufferedIOBase, needles: Sequence[Needle]) -> int:
    """How often texts are in the bytes of a file, read in windows that overlap."""
    overlap = max(needle.longest for needle in needles)
    count, kept = 0, b""
    while chunk := file.read(WINDOW):
        data = kept + chunk
        count += sum(needle.count_bytes(data) for needle in needles)
        kept = data[-overlap:] if len(chunk) == WINDOW else b""
        count -= sum(needle.count_bytes(kept) for needle in needles) if kept else 0
    return count


class _Clues(NamedTuple):
    """Short texts of which one at least is wherever a needle is: the patterns are slow, and hardly ever needed."""

    low: tuple[str, ...]
    """In lower case. A part of the needle; or, if that is escaped, the escape of one of its characters."""
    exact: tuple[str, ...]
    """Parts of its base64."""
    always: bool
    """It has no part that is written in one way only: everything has to be looked at."""

    @classmethod
    def of(cls, texts: Iterable[str], cores: Iterable[str]) -> _Clues:
        parts = [max(_plain_parts(text), key=len, default="") for text in texts]
        escapes = {
            clue
            for part in parts
            for c in part
            for v in _cases(c)
            for clue in (_units(v)[0], _percents(v)[0])
        }
        exact = [max(re.split(r"[+/]", core), key=len) for core in cores]
        return cls((*parts, *sorted(escapes)), tuple(exact), not all(parts) or not all(exact))

    def fit(self, data: AnyStr, low: AnyStr, written: Callable[[str], AnyStr]) -> bool:
        """Whether the needle may be in some data.

        Args:
            data: the data.
            low: it in lower case.
            written: how a clue is written in it.
        """
        return (
            self.always
            or any(written(clue).lower() in low for clue in self.low)
            or any(written(clue) in data for clue in self.exact)
        )


def _plain_parts(text: str) -> list[str]:
    """Parts whose characters are written in one way, but for case and escapes."""
    plain = "".join(
        c if (c.isascii() and c.isalnum()) or (len(_cases(c)) == 1 and not c.isascii()) else " " for c in text
    )
    return [part.lower() for part in plain.split(" ") if part]


def merged(needles: Sequence[tuple[Needle, str]], text: str) -> tuple[str, int]:
    """The text with each occurrence of each needle replaced, and how many there were.

    Where occurrences overlap, all of their characters go, and what the first needle is replaced by stands there.

    Args:
        needles: each with what it is replaced by.
        text: where they are looked for.
    """
    found = [(span, number) for number, (needle, _) in enumerate(needles) for span in needle.spans(text)]
    if not found:
        return text, 0
    parts, end = [], 0
    for begin, stop in _joined(span for span, _ in found):
        first = min(number for (b, _), number in found if begin <= b < stop)
        parts += [text[end:begin], needles[first][1]]
        end = stop
    return "".join([*parts, text[end:]]), len(found)


def _overlapping(pattern: re.Pattern[str], text: str) -> list[Span]:
    spans, place = [], 0
    while match := pattern.search(text, place):
        spans.append(match.span())
        place = match.start() + 1
    return spans


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, stop in sorted(spans):
        if joined and begin < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((begin, stop))
    return joined


def _normal_forms(text: str) -> list[str]:
    return list(dict.fromkeys([text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]))


def _forms(character: str, exact_case: bool) -> list[Form]:
    c = character
    forms: list[Form] = []
    for variant in [c] if exact_case else _cases(c):
        forms += [(SLASHES,)] if variant == "\\" else [(variant,)]
        if variant in NAMED:
            forms.append((SLASHES, NAMED[variant]))
        for cased in (str.lower, str.upper):
            forms.append(tuple(part for unit in _units(variant) for part in (SLASHES, "u" + cased(unit[1:]))))
            forms.append((cased("".join(_percents(variant))),))
    return forms


def _cases(character: str) -> list[str]:
    c = character
    return list(dict.fromkeys([c, c.lower(), c.upper(), c.title(), c.casefold()]))


def _units(text: str) -> list[str]:
    """Escapes as in JSON, without their backslashes: `u00e9`."""
    data = text.encode("utf-16-be", "surrogatepass")
    return [f"u{data[i : i + 2].hex()}" for i in range(0, len(data), 2)]


def _percents(text: str) -> list[str]:
    """Escapes as in addresses: `%c3`, `%a9`."""
    return [f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass")]


def _base64_cores(text: str) -> list[str]:
    """What base64 holds of a text for sure, whichever of three places of its alphabet it begins at."""
    data = text.encode("utf-8", "surrogatepass")
    cores = []
    for before in range(3):
        written = base64.b64encode(bytes(before) + data).decode()
        core = written[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        if len(core) >= BASE64_LEAST:
            cores.append(core)
    return cores


def _base64_forms(character: str) -> list[Form]:
    others: dict[str, list[Form]] = {"+": [("-",)], "/": [("_",), (SLASHES, "/")]}
    return [(character,), *others.get(character, [])]
