"""Files from elsewhere: task files (`read_tasks`), and recorded rollouts, one file a format (`IMPORTERS`)."""

from __future__ import annotations

from pathlib import Path

from core.errors import InputError
from core.importers.recorded import Recorded, RecordedFile, TraceImporter
from core.importers.source import Rejected, read_bytes
from core.importers.splits import SHARES, assign_splits, text_key
from core.importers.tasks import Duplicate, TaskFile, read_tasks
from core.importers.winnow_jsonl import WinnowJsonl

__all__ = [
    "IMPORTERS",
    "SHARES",
    "Duplicate",
    "Recorded",
    "RecordedFile",
    "Rejected",
    "TaskFile",
    "TraceImporter",
    "assign_splits",
    "read_rollouts",
    "read_tasks",
    "text_key",
]

IMPORTERS: dict[str, TraceImporter] = {
    "winnow_jsonl": WinnowJsonl(),
}
"""Formats of recorded rollouts, in the order in which a file is tried for them."""


def read_rollouts(data: bytes | Path, *, name: str = "", format: str | None = None) -> RecordedFile:
    """Read recorded rollouts, in the format that is named or else recognised.

    Raises:
        InputError: an unknown format, or a file that cannot be read as a whole; a bad rollout is set aside.
    """
    if format is not None and format not in IMPORTERS:
        raise InputError(
            f"There is no format {format!r} of recorded rollouts; use one of: {', '.join(IMPORTERS)}."
        )
    raw, name = read_bytes(data, name)
    if format is not None:
        return IMPORTERS[format].read(raw, name)
    for importer in IMPORTERS.values():
        if importer.recognises(raw, name):
            return importer.read(raw, name)
    raise InputError(
        f"{name} is in no format of recorded rollouts that Winnow knows ({', '.join(IMPORTERS)})."
    )
