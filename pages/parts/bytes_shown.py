"""Exactly the bytes that a download brings: whole, or head and tail; each file of a zip; lines beside old ones."""

from __future__ import annotations

import difflib
import hashlib
import io
import zipfile
from collections.abc import Sequence

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


def draw(data: bytes, name: str) -> None:
    """What is in a file that was made here."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        text(data, "pack_text")
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    frame.note(f"{name} holds {len(files)} files; each is shown as it is in there.")
    for number, (file, content) in enumerate(files.items()):
        with st.expander(safe.label(f"{file} · {len(content):,} bytes"), expanded=file == "prompt.txt"):
            safe.html(
                '<div class="w-hash w-note">SHA-256 {sum}</div>', sum=hashlib.sha256(content).hexdigest()
            )
            text(content, f"pack_file_{number}")


def text(data: bytes, key: str) -> None:
    """Text as it is: whole, or its head and its tail with what is left out between them counted."""
    said = data.decode("utf-8", "replace")
    if len(said) <= HEAD + TAIL:
        safe.html('<div class="w-exact {key}" dir="auto">{text}</div>', key=key, text=said)
    else:
        safe.html('<div class="w-exact {key}" dir="auto">{text}</div>', key=key, text=said[:HEAD])
        frame.note(f"{len(said) - HEAD - TAIL:,} characters are not shown here; the download has them all.")
        safe.html('<div class="w-exact {key}" dir="auto">{text}</div>', key=key, text=said[-TAIL:])
    safe.warn_hidden(said)


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
