"""A marked region in AGENTS.md for each pack: replaced in place, and not a byte outside it is touched.

A region belongs to the pack that its first marker names. A marker counts only at the start of a line. The renderer
indents every further line of a lesson, so no lesson can hold a marker there, and the text between the markers is the
injected text, character for character.
"""

from __future__ import annotations

import hashlib
import re

from core.errors import PackError
from core.injection import read_injection
from core.packs.content import PackContent, lessons_of, slug
from core.packs.prompt import prompt_text

_MARK = re.compile(
    rb"^<!-- winnow:(?:begin(?:[ \t]+(?P<name>[^\s>]+))?\b[^\r\n]*|(?P<end>end) )-->(?=\r?$)", re.MULTILINE
)


def region(content: PackContent) -> bytes:
    """The two markers and what stands between them, without a final line break."""
    text = prompt_text(lessons_of(content))
    begin = f"<!-- winnow:begin {_key(content.name)} version {content.version.number} -->"
    return "\n".join(line for line in (begin, text, "<!-- winnow:end -->") if line).encode()


def write(content: PackContent) -> bytes:
    """A file that holds nothing but the region."""
    return place(content, b"")


def place(content: PackContent, existing: bytes) -> bytes:
    """The existing file with the pack's region replaced, or with one appended where it has none of that name.

    Raises:
        PackError: the markers do not form whole regions, one for each name, so that it is unclear what to replace.
    """
    if existing.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise PackError("The file is in UTF-16; save it as UTF-8 first.")
    found = _regions(existing).get(_key(content.name))
    if found is not None:
        return existing[: found[0]] + region(content) + existing[found[1] :]
    gap = b"" if not existing else b"\n" if existing.endswith(b"\n") else b"\n\n"
    return existing + gap + region(content) + b"\n"


def read(data: bytes) -> list[str]:
    """The texts of the lessons in a file's regions, in the order of the file; none where there is no region.

    Raises:
        PackError: a region was broken by hand.
    """
    texts: list[str] = []
    for start, end in _regions(data).values():
        try:
            inside = data[start:end].decode().split("\n", 1)[1]
            texts += read_injection(inside.removesuffix("<!-- winnow:end -->").removesuffix("\n"))
        except (ValueError, IndexError) as e:
            raise PackError("The region between the winnow markers is not what Winnow wrote.") from e
    return texts


def _key(name: str) -> str:
    """Names a region: the pack's slug, and a sum of the name where the slug has lost letters of it.

    >>> _key("Capital Cities"), _key("首都") == _key("東京")
    ('capital-cities', False)
    """
    short = slug(name)
    letters = [c for c in name.lower() if c.isalnum()]
    if letters == [c for c in short if c.isalnum()]:
        return short
    return f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _regions(data: bytes) -> dict[str, tuple[int, int]]:
    """Where each region begins and ends, by its key."""
    found: dict[str, tuple[int, int]] = {}
    begun: re.Match[bytes] | None = None
    for mark in _MARK.finditer(data):
        if (begun is None) is (mark["end"] is not None):  # an end without a begin, or a begin within a region
            raise _unclear()
        if mark["end"] is None:
            begun = mark
        elif begun is not None:
            key = (begun["name"] or b"").decode("utf-8", "replace")
            if key in found:
                raise _unclear()
            found[key], begun = (begun.start(), mark.end()), None
    if begun is not None:
        raise _unclear()
    return found


def _unclear() -> PackError:
    return PackError(
        "The file's winnow:begin and winnow:end markers do not form whole regions, one for each name;"
        " mend them by hand, nothing was changed."
    )
