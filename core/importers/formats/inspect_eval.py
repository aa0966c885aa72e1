"""Logs of Inspect AI: `.eval` (a zip archive, a member for each sample) and `.json`.

1. Members may be compressed with deflate or, as Inspect writes them today, with Zstandard (zip method 93).
2. One sample is held in memory at a time, and of its events one at a time. A sample may also be cut into pieces
   (`samples/<id>_epoch_<n>/sample.json` beside `messages/`, `events/`, `attachments/`; log version 3).
3. A log that crashed has no header, only `_journal/start.json`: its samples are good, and so are those of a log whose
   status is "error" or "cancelled".
4. `reductions` are means over epochs and no attempts; `summaries` repeat the samples. Neither is read.
5. What the samples add up to is held against the header (`Totals`).
6. An archive that is cut off has no list of its members any more: those that are whole are found without it.
"""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from core.errors import InputError
from core.importers.archive_end import members_told
from core.importers.attempt import Aside, Attempt, Brings, Found, Remark
from core.importers.cut_archive import whole_members
from core.importers.formats.inspect_samples import Log, Sample, attempt_of, scores_of, take_sample
from core.importers.formats.inspect_totals import Totals
from core.importers.getting import as_dict, as_int, as_list, as_said, as_text, at
from core.importers.json_stream import JsonStream, not_utf8_in
from core.importers.opened import Opened
from core.importers.source import MAX_RAW, bounded

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

_ZIP = b"PK\x03\x04"
_STARTS = ("header.json", "_journal/start.json")
MANY = 100_000
"""Members of an archive whose names are not all looked at to recognise it."""
_SAMPLE = re.compile(r"samples/.*_epoch_\d+(/sample)?\.json", re.DOTALL)

_UNREADABLE = (zipfile.BadZipFile, ZstdError, RuntimeError, OSError, EOFError, zlib.error, ValueError)
"""What reading a damaged member may raise; RuntimeError where it is encrypted or its compression is not known."""


class Inspect:
    """The format, as archive and as JSON."""

    name = "inspect"
    title = "Inspect AI log"
    brings = Brings(reward="yes; of several, said by the user", repeats="yes", steps="yes")

    def recognises(self, opened: Opened) -> bool:
        if opened.head.startswith(_ZIP):
            return any(name.encode() in opened.head for name in _STARTS) or _has_header(opened)
        return opened.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and _is_header(opened.head)

    def read(self, opened: Opened) -> Iterator[Found]:
        if opened.head.startswith(_ZIP):
            yield from _archived(opened)
        else:
            yield from _as_json(opened)


def _has_header(opened: Opened) -> bool:
    """Whether a log has its header far behind; what has that many members wrote the start of it first."""
    try:
        if members_told(opened.path) > MANY:
            return False
        with opened.stream() as file, zipfile.ZipFile(file) as archive:
            return any(name in archive.namelist() for name in _STARTS)
    except (*_UNREADABLE, InputError):
        return False


def _is_header(head: bytes) -> bool:
    """Whether the first members of an object are those of a log; the head may end in the middle."""
    found = as_dict(JsonStream(io.BytesIO(head)).outline(1))
    return "version" in found and "status" in found and isinstance(at(found, "eval", "task"), str)


@dataclass
class _Reading:
    """A log while its samples are read."""

    name: str
    log: Log = field(default_factory=Log)
    totals: Totals = field(default_factory=Totals)
    hidden: int = 0
    """Samples whose events show more calls of tools than their conversation."""
    invalid: int = 0
    cut: bool = False
    """Whether the end is missing, and the header with it."""

    def attempt(self, sample: Sample, place: str) -> Attempt | Aside:
        if not sample.members.get("input") and not sample.members.get("messages"):
            raw = bounded(as_said(sample.members), MAX_RAW)
            return Aside(place=place, reason="this is no sample: it has neither input nor messages", raw=raw)
        attempt = attempt_of(sample, self.log, place)
        self.totals.add(attempt, scores_of(sample.members))
        self.hidden += len(sample.tool_calls) > len(attempt.trajectory.steps)
        self.invalid += bool(sample.members.get("invalidation"))
        return attempt

    def remarks(self, header: dict[str, Any]) -> Iterator[Remark]:
        """What should be known of the log, when all of it was read."""
        status = as_text(header.get("status"))
        if self.cut and not status:
            pass
        elif status == "started" or not status:
            yield Remark(text=f"{self.name} was never finished: the samples that it has were read.")
        elif status != "success":
            why = as_text(at(header.get("error"), "message"))
            yield Remark(
                text=f"The status of {self.name} is {status!r}{f' ({bounded(why, 200)})' if why else ''}: "
                "the samples that it has were read."
            )
        if self.hidden:
            yield Remark(
                text=f"In {self.hidden} samples of {self.name} the events show more calls of tools than the "
                "conversation (of sub-agents, or before it was shortened); those are left out."
            )
        if self.invalid:
            yield Remark(
                text=f"{self.invalid} samples of {self.name} were invalidated by hand; their scores are left out."
            )
        headline = as_text(at(header.get("results"), "headline", "score"))
        if headline and len(as_list(at(header.get("results"), "scores"))) > 1:
            yield Remark(text=f"{self.name} names {headline!r} as the score to look at first.")
        yield from self.totals.disagreements(header, self.name)


def _archived(opened: Opened) -> Iterator[Found]:
    with opened.stream() as file:
        archive, lost = _open(file, opened.name)
        members = _samples_in(archive)
        header = _header(archive)
        reading = _Reading(opened.name, Log.of(header), cut=lost is not None)
        if not members:
            yield Remark(
                text=f"{opened.name} holds no samples; it was logged without them, or ended too early."
            )
        for member in members:
            place = bounded(as_text(member.filename), 200)
            try:
                found: Found = reading.attempt(_sample(archive, member), place)
            except _UNREADABLE as e:
                found = Aside(place=place, reason=_reason(e))
            yield found
        if lost is not None:
            yield lost
        yield from reading.remarks(header)


def _open(file: IO[bytes], name: str) -> tuple[zipfile.ZipFile, Aside | Remark | None]:
    """The archive, and what is to be said where its end is missing.

    Raises:
        InputError: no sample of it is whole.
    """
    try:
        return zipfile.ZipFile(file), None
    except _UNREADABLE as e:
        archive, cut = whole_members(file)
        n = len(_samples_in(archive))
        if not n:
            raise InputError(
                f"{name} is a damaged Inspect log: its zip archive is cut off or broken, and no whole sample is found; "
                "copy it again."
            ) from e
    samples = "1 sample" if n == 1 else f"{n:,} samples"
    if cut is None:
        return archive, Remark(
            text=f"{name} is cut off within its list of members; all {samples} were found."
        )
    return archive, Aside(
        place=bounded(as_text(cut), 200) or "the end",
        reason=f"the archive is cut off or broken here, and what follows is lost; {samples} before it were found. Copy "
        "the log again for the others",
    )


def _samples_in(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [m for m in archive.infolist() if _SAMPLE.fullmatch(m.filename)]


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    """The header, or where there is none (or a damaged one) the start of the log."""
    for name in _STARTS:
        try:
            with archive.open(name) as file:
                return as_dict(JsonStream(file).value())
        except (KeyError, *_UNREADABLE):
            continue
    return {}


def _sample(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Sample:
    """The sample of a member, whole or in pieces.

    Raises:
        ValueError, or what a damaged archive raises.
    """
    with archive.open(member) as file:
        stream = JsonStream(file)
        sample = take_sample(stream)
        stream.end()
    if stream.not_utf8:
        raise ValueError("bytes of it are not UTF-8")
    if member.filename.endswith("/sample.json"):
        _put_together(archive, member.filename.removesuffix("sample.json"), sample)
    return sample


def _put_together(archive: zipfile.ZipFile, folder: str, sample: Sample) -> None:
    """Add the pieces of a sample: messages by their references, attachments by their place, events counted."""
    for name in _pieces(archive, f"{folder}events/"):
        with archive.open(name) as file:
            stream = JsonStream(file)
            for _ in stream.items():
                sample.see(stream.value())
    pool = _sequence(archive, f"{folder}messages/")
    ranges = [
        (as_int(at(r, 0)) or 0, as_int(at(r, 1)) or 0) for r in as_list(sample.members.get("message_refs"))
    ]
    if any(end > len(pool) for _, end in ranges):
        raise ValueError("messages of it are missing")
    sample.members["messages"] = [m for start, end in ranges for m in pool[start:end]]
    texts = _sequence(archive, f"{folder}attachments/")
    sample.members["attachments"] = {str(place): text for place, text in enumerate(texts)}
    if f"{folder}metadata.json" in archive.NameToInfo:
        with archive.open(f"{folder}metadata.json") as file:
            sample.members["metadata"] = JsonStream(file).value()


def _pieces(archive: zipfile.ZipFile, folder: str) -> list[str]:
    """The members of a sequence in order: each is named by the place of its first item."""
    names = [n for n in archive.NameToInfo if n.startswith(folder)]
    starts = {int(m[1]): n for n in names if (m := re.fullmatch(r"(\d{1,12})\.json", n[len(folder) :]))}
    return [starts[start] for start in sorted(starts)]


def _sequence(archive: zipfile.ZipFile, folder: str) -> list[Any]:
    found: list[Any] = []
    for name in _pieces(archive, folder):
        with archive.open(name) as file:
            found += as_list(JsonStream(file).value())
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, zipfile.BadZipFile | ZstdError | zlib.error):
        return "this member of the archive is damaged"
    if isinstance(error, NotImplementedError):
        return "its compression is not known"
    return (
        as_text(str(error)) if isinstance(error, ValueError) else f"it cannot be read: {as_text(str(error))}"
    )


def _as_json(opened: Opened) -> Iterator[Found]:
    reading, header, place = _Reading(opened.name), dict[str, Any](), "the header"
    has_samples = False
    with opened.stream() as file:
        stream = JsonStream(file)
        try:
            for key in stream.members():
                if key == "samples" and stream.kind() == "[":
                    has_samples = True
                    reading.log = Log.of(header if "eval" in header else _before_samples(opened))
                    for number in stream.items():
                        place = f"sample {number + 1}"
                        yield _next_sample(stream, reading, place)
                    place = "what follows the samples"
                elif key == "reductions":
                    stream.skip()
                else:
                    header[key] = stream.value()
            stream.end()
        except ValueError as e:
            yield Aside(place=place, reason=f"{e}; nothing after it was read")
        if stream.not_utf8:
            yield Remark(
                text=f"{stream.not_utf8} bytes of {opened.name} are not UTF-8 and were replaced by \ufffd."
            )
    if not has_samples:
        yield Remark(text=f"{opened.name} is only the header of a log: it holds no samples.")
        return
    yield from reading.remarks(header)


def _next_sample(stream: JsonStream, reading: _Reading, place: str) -> Found:
    if stream.kind() != "{":
        return Aside(
            place=place, reason="the sample is no object", raw=bounded(as_said(stream.value()), MAX_RAW)
        )
    sample = take_sample(stream)
    if stream.not_utf8 and not_utf8_in(sample.members):
        return Aside(
            place=place, reason="bytes of it are not UTF-8", raw=bounded(as_said(sample.members), MAX_RAW)
        )
    return reading.attempt(sample, place)


def _before_samples(opened: Opened) -> dict[str, Any]:
    """The members of a log whose header follows its samples."""
    header: dict[str, Any] = {}
    with opened.stream() as file:
        stream = JsonStream(file)
        try:
            for key in stream.members():
                if key in ("eval", "plan"):
                    header[key] = stream.value()
                else:
                    stream.skip()
        except ValueError:
            pass
    return header
