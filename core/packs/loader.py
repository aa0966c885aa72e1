"""The Python loader: one file that renders the injection where Winnow is not installed, with the lessons in it."""

from __future__ import annotations

from pathlib import Path

from core.errors import PackError
from core.packs.content import PackContent
from core.packs.pack import make_pack

SOURCE = Path(__file__).with_name("winnow_lessons.py")
_PLACE = "EMBEDDED: str | None = None\n"


def write(content: PackContent) -> bytes:
    """The file `winnow_lessons.py` with the version's pack.json in it, as text that is ASCII throughout."""
    before, place, after = SOURCE.read_text(encoding="utf-8").partition(_PLACE)
    if not place:
        raise PackError("This installation of Winnow is damaged: its loader has no place for the lessons.")
    embedded = f"EMBEDDED: str | None = {make_pack(content).canonical()!a}\n"
    return (before + embedded + after).encode()
