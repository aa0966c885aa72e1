"""The formats of recorded rollouts with what they bring: for the list of them (`winnow rollouts formats`)."""

from __future__ import annotations

from core.importers.formats import FORMATS
from core.record import Record


class Brought(Record):
    """One format, in words."""

    name: str
    title: str
    reward: str
    repeats: str
    steps: str


def brought() -> list[Brought]:
    """All formats, in the order in which a file is tried for them."""
    return [Brought(name=form.name, title=form.title, **form.brings._asdict()) for form in FORMATS]
