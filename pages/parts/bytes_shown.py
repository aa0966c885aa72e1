"""Exactly the bytes that a download brings: whole, or head and tail; each file of a zip; lines beside old ones."""

from __future__ import annotations

import difflib
import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import streamlit as st

from pages.parts import frame, safe
from pages.parts.safe import Markup, joined, markup

HEAD, TAIL = 4_000, 1_500
LINES = 400
"""Lines of a difference that are shown."""
CONTEXT = 3
MIME = {".zip": "application/zip", ".json": "application/json", ".csv": "text/csv"}


def mime(name: str) -> str:
    return MIME.get(name[name.rfind(".") :], "text/plain")


@dataclass(frozen=True)
class File:
    """A file as far as it is shown: what is not, is only counted."""

    name: str
    size: int
    sha256: str
    head: str
    tail: str
    """Empty where all of it is the head."""
    between: int
    """Characters that are not shown."""
    hidden: tuple[tuple[str, int], ...]
    """Characters of the whole file that cannot be seen."""


@lru_cache(maxsize=8)
def files(data: bytes) -> tuple[File, ...]:
    """What a file that was made here holds: the files of a zip, else itself; read once for the same bytes."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return (_file("", data),)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return tuple(_file(entry.filename, archive.read(entry)) for entry in archive.infolist())


def _file(name: str, data: bytes) -> File:
    said = data.decode("utf-8", "replace")
    cut = len(said) > HEAD + TAIL
    return File(
        name=name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        head=said[:HEAD] if cut else said,
        tail=said[-TAIL:] if cut else "",
        between=len(said) - HEAD - TAIL if cut else 0,
        hidden=tuple(safe.hidden(said)),
    )


def draw(data: bytes, name: str) -> None:
    """What is in a file that was made here."""
    found = files(data)
    if not found[0].name:
        _text(found[0], "pack_text")
        return
    frame.note(f"{name} holds {len(found)} files; each is shown as it is in there.")
    for number, file in enumerate(found):
        with st.expander(
            safe.label(f"{file.name} · {file.size:,} bytes"), expanded=file.name == "prompt.txt"
        ):
            safe.html('<div class="w-hash w-note">SHA-256 {sum}</div>', sum=file.sha256)
            _text(file, f"pack_file_{number}")


def _text(file: File, key: str) -> None:
    """Text as it is: whole, or its head and its tail with what is left out between them counted."""
    safe.html('<div class="w-exact {key}" dir="auto">{text}</div>', key=key, text=file.head)
    if file.between:
        frame.note(f"{file.between:,} characters are not shown here; the download has them all.")
        safe.html('<div class="w-exact {key}" dir="auto">{text}</div>', key=key, text=file.tail)
    safe.say_hidden(file.hidden)


def line_diff(before: bytes, after: bytes) -> None:
    """What changes of a file, line by line, with a few lines around it."""
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines: list[Markup] = []
    end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if (start := group[0][1]) > end:
            lines.append(markup('<div class="cut">{n} lines stay as they are</div>', n=f"{start - end:,}"))
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += _lines("as", new[c:d])
            else:
                lines += [*_lines("out", old[a:b]), *_lines("in", new[c:d])]
        end = group[-1][2]
    if len(old) > end:
        lines.append(markup('<div class="cut">{n} lines stay as they are</div>', n=f"{len(old) - end:,}"))
    if len(lines) > LINES:
        lines = [*lines[:LINES], markup('<div class="cut">{n} more</div>', n=f"{len(lines) - LINES:,}")]
    safe.html('<div class="w-lines" dir="auto">{lines}</div>', lines=joined(lines))


def _lines(look: str, lines: Sequence[str]) -> list[Markup]:
    return [markup('<div class="{look}">{line}</div>', look=look, line=line[:HEAD]) for line in lines]
