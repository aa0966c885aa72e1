"""Files that were uploaded, on disk for as long as they may be read: commands beside the app take paths."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.workspace import alongside
from pages.parts import laid_down

KEPT = 12
"""Uploads that are kept, of all sessions together; the oldest goes first."""
_ODD = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


class Given(NamedTuple):
    """One file that somebody handed in."""

    name: str
    """Its name, or its path below the folder that was uploaded."""
    id: str
    """Another one for other content."""
    read: Callable[[], memoryview]


def of_upload(file: UploadedFile) -> Given:
    return Given(file.name, file.file_id, file.getbuffer)


def of_text(name: str, text: str) -> Given:
    """What was pasted, as a file."""
    data = text.encode("utf-8", "replace")
    return Given(name, text, lambda: memoryview(data))


def kept(files: Sequence[Given]) -> Path:
    """The file on disk; of several, a folder with all of them, where each lies beside its neighbours.

    It stays until `KEPT` others have come, or the app ends.
    """
    paths = _paths(files)
    folder = Path(_folder(tuple(file.id for file in files), tuple(paths), files).name)
    tops = {path.parts[0] for path in paths}
    return folder / (tops.pop() if len(tops) == 1 else "")


def _paths(files: Sequence[Given]) -> list[Path]:
    """Where each file lies below its folder; several without a folder of their own get one that counts them."""
    clean = [_clean(file.name) for file in files]
    if len({path.parts[0] for path in clean}) > 1:
        clean = [Path(f"{len(files)} files") / path for path in clean]
    found: list[Path] = []
    for i, path in enumerate(clean):  # the same name again: in a folder of its own
        found.append(path.parent / str(i + 1) / path.name if path in found else path)
    return found


def _clean(name: str) -> Path:
    """A name from elsewhere as a path that leads down."""
    parts = (_ODD.sub("_", part)[:120].strip() for part in PurePosixPath(name.replace("\\", "/")).parts)
    down = [part for part in parts if part and part not in (".", "..", "/")]
    return Path(*down[-8:]) if down else Path("file")


_READ: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that others took the place of while a command reads them."""


def _gone(folder: tempfile.TemporaryDirectory[str]) -> None:
    """Remove a folder, unless an import beside the app still reads it: then later."""
    _READ.append(folder)
    for one in [each for each in _READ if not alongside.reads(each.name)]:
        _READ.remove(one)
        one.cleanup()


@st.cache_resource(max_entries=KEPT, show_spinner=False, on_release=_gone)
def _folder(
    ids: tuple[str, ...], paths: tuple[Path, ...], _files: Sequence[Given]
) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(dir=laid_down.folder(), prefix="", ignore_cleanup_errors=True)
    for path, file in zip(paths, _files, strict=True):
        target = Path(folder.name) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read())
    return folder
