"""A marked region in AGENTS.md: replaced in place, and not a byte outside it is touched.

A marker counts only at the start of a line. The renderer indents every further line of a lesson, so no lesson
can hold a marker there, and the text between the markers is the injected text, character for character.
"""

from __future__ import annotations

import re

from core.errors import PackError
from core.injection import read_injection
from core.packs.content import PackContent, lessons_of, slug
from core.packs.prompt import prompt_text

_BEGIN = re.compile(rb"^<!-- winnow:begin\b[^\r\n]*-->(?=\r?$)", re.MULTILINE)
_END = re.compile(rb"^<!-- winnow:end -->(?=\r?$)", re.MULTILINE)


def region(content: PackContent) -> bytes:
    """The two markers and what stands between them, without a final line break."""
    text = prompt_text(lessons_of(content))
    begin = f"<!-- winnow:begin {slug(content.name)} version {content.version.number} -->"
    return "\n".join(line for line in (begin, text, "<!-- winnow:end -->") if line).encode()


def write(content: PackContent) -> bytes:
    """A file that holds nothing but the region."""
    return place(content, b"")


def place(content: PackContent, existing: bytes) -> bytes:
    """The existing file with its region replaced, or with one appended where it has none.

    Raises:
        PackError: the markers do not form exactly one region, so that it is unclear what to replace.
    """
    if existing.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise PackError("The file is in UTF-16; save it as UTF-8 first.")
    found = _find(existing)
    if found is not None:
        return existing[: found[0]] + region(content) + existing[found[1] :]
    gap = b"" if not existing else b"\n" if existing.endswith(b"\n") else b"\n\n"
    return existing + gap + region(content) + b"\n"


def read(data: bytes) -> list[str]:
    """The texts of the lessons in a file's region; none where there is no region.

    Raises:
        PackError: the region was broken by hand.
    """
    found = _find(data)
    if found is None:
        return []
    try:
        inside = data[found[0] : found[1]].decode().split("\n", 1)[1]
        return read_injection(inside.removesuffix("<!-- winnow:end -->").removesuffix("\n"))
    except (ValueError, IndexError) as e:
        raise PackError("The region between the winnow markers is not what Winnow wrote.") from e


def _find(data: bytes) -> tuple[int, int] | None:
    begins, ends = list(_BEGIN.finditer(data)), list(_END.finditer(data))
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins[0].end() > ends[0].start():
        raise PackError(
            "The file's winnow:begin and winnow:end markers do not form exactly one region;"
            " mend them by hand, nothing was changed."
        )
    return begins[0].start(), ends[0].end()
