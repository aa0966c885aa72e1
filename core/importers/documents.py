"""The JSON objects of a file that is one object, a list of objects, or an object on each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import InputError
from core.importers.attempt import Aside
from core.importers.getting import as_said
from core.importers.json_stream import not_utf8_in
from core.importers.json_text import parsed
from core.importers.lines import Piece, is_list, members_of, objects_of, set_aside
from core.importers.opened import RECORDS, Opened, SeveralValuesError

MAX_BESIDE = 200_000_000
"""Bytes of a neighbouring file that is read; a larger one counts as not there."""


class Document(NamedTuple):
    """One object of a file."""

    place: str
    """"line 3", "record 2"; "the file" where it is the whole of it."""
    value: dict[str, Any]


def documents_of(opened: Opened, fits: Callable[[Any], bool]) -> Iterator[Document | Aside]:
    """The objects of a file, in order, of a list one at a time; what is none, or does not fit, is set aside.

    Raises:
        InputError: the file is one JSON value and cannot be read.
    """
    if is_list(opened) or _has_lines(opened, fits):
        yield from _several(objects_of(opened), fits)
        return
    try:
        value = opened.whole
    except SeveralValuesError:
        yield from _several(members_of(opened), fits)
        return
    if opened.not_utf8 and not_utf8_in(value):
        yield set_aside("the file", "bytes of it are not UTF-8", as_said(value))
    else:
        yield from _fitting("the file", value, fits)


def beside(opened: Opened, *names: str) -> Opened | None:
    """A neighbouring file, opened; None where it is not there, is too large, or no file can have such a name."""
    try:
        path = opened.beside(*names)
        fits = path is not None and path.stat().st_size <= MAX_BESIDE
    except (OSError, ValueError):
        return None
    return Opened(path, name=path.name, root=opened.root) if path is not None and fits else None


def neighbour(opened: Opened, name: str) -> Path | None:
    """A neighbouring file that is only looked at: it does not come to belong to this one."""
    for each in (name, f"{name}.gz"):
        with suppress(OSError, ValueError):
            path = (opened.path.parent / each).resolve()
            if path.is_file() and path.is_relative_to(opened.root.resolve()):
                return path
    return None


def whole_of(opened: Opened | None) -> Any:
    """The JSON value of a neighbouring file; None where there is none that can be read."""
    try:
        return opened.whole if opened is not None else None
    except InputError:
        return None


def _several(pieces: Iterator[Piece | Aside], fits: Callable[[Any], bool]) -> Iterator[Document | Aside]:
    for piece in pieces:
        if isinstance(piece, Aside):
            yield piece
        else:
            yield from _fitting(piece.place, piece.value, fits)


def _fitting(place: str, value: Any, fits: Callable[[Any], bool]) -> Iterator[Document | Aside]:
    if fits(value):
        yield Document(place, value)
    else:
        yield set_aside(place, "it lacks what a record of this format has", as_said(value))


def _has_lines(opened: Opened, fits: Callable[[Any], bool]) -> bool:
    """Whether an object stands on each line: one of the first lines is an object that fits."""
    with suppress(InputError):
        for _, line in islice(opened.lines(), RECORDS):
            with suppress(ValueError, RecursionError):
                if fits(parsed(line.decode("utf-8", "surrogateescape"))):
                    return True
    return False
