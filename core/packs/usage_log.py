"""The usage log that the Python loader writes where lessons are shipped: read back, and trusted for nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from core.errors import InputError, PackError
from core.importers.source import Rejected, decode, lines_of, parse_line, rejected
from core.packs.content import check_strings, holds_secret
from core.record import Record, content_hash

MAX_LOG_BYTES = 64 * 2**20
MAX_LINE = 2**20
"""Characters of a line; a longer one is set aside unread."""
MAX_ENTRIES = 200_000

Short = Annotated[str, StringConstraints(max_length=1_000)]
Mark = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]


class LoggedPack(Record):
    """What the lessons were read from."""

    name: Short
    version: int = Field(ge=0, lt=2**53)
    sha256: Short = ""
    """Of its pack.json."""


class UsageEntry(Record):
    """One attempt somewhere else with shipped lessons."""

    model_config = ConfigDict(allow_inf_nan=False)

    winnow_usage: Literal[1]
    entry: Short
    """Drawn at random by the writer, so that two equal attempts are two entries."""
    at: Short = ""
    """UTC, ISO 8601, as the writer's clock went."""
    pack: LoggedPack
    domain: Short | None = None
    task: Short = ""
    """Attempts at one task are siblings; empty where the writer named none."""
    model: Short = ""
    injected: dict[Short, Mark] = Field(max_length=10_000)
    """The first 16 hex digits of each text's SHA-256, by the id of the lesson."""
    followed: tuple[Short, ...] | None = None
    """Ids of the lessons that were cited or followed; None where nobody looked."""
    outcome: float | None = Field(default=None, ge=0, le=1)
    """None where it is not known, which is not the same as 0."""

    @model_validator(mode="after")
    def _followed_what_was_injected(self) -> Self:
        if other := next((i for i in self.followed or () if i not in self.injected), None):
            raise ValueError(f"it followed {other[:60]!r}, which was not injected")
        return self

    @property
    def key(self) -> str:
        """The entry's hash: the same entry again is no new one."""
        return content_hash(self.model_dump(mode="json"))

    def only(self, known: Collection[str]) -> UsageEntry:
        """The entry without the lessons that are not `known`."""
        kept = {i: mark for i, mark in self.injected.items() if i in known}
        followed = None if self.followed is None else tuple(i for i in self.followed if i in kept)
        return self.model_copy(update={"injected": kept, "followed": followed})


class Credit(Protocol):
    """Who credits lessons with what became of them, inside the transaction that keeps the entries."""

    def __call__(self, entries: Sequence[UsageEntry]) -> None: ...


class UsageLog(Record):
    """All of a log: every line is an entry or set aside."""

    entries: tuple[UsageEntry, ...]
    aside: tuple[Rejected, ...]


def read_usage(data: bytes, name: str = "the log") -> UsageLog:
    """Read a log; a bad line is set aside with its reason, and the others are read.

    Raises:
        InputError: the file as a whole is too large, no text, or holds no line.
    """
    if len(data) > MAX_LOG_BYTES:
        raise InputError(f"{name} has {len(data)} bytes; at most {MAX_LOG_BYTES} are read. Split it.")
    text, _ = decode(data, name)
    entries: list[UsageEntry] = []
    aside: list[Rejected] = []
    for number, line in lines_of(text):
        try:
            entries.append(_entry(line))
        except (InputError, ValueError) as e:
            secret = isinstance(e, PackError) or holds_secret([line, str(e)])  # that is not repeated
            reason = "it holds what looks like a secret" if holds_secret(str(e)) else str(e)
            aside.append(rejected(number, reason, "" if secret else line))
        if len(entries) > MAX_ENTRIES:
            raise InputError(f"{name} has more than {MAX_ENTRIES} entries. Split it.")
    if not entries and not aside:
        raise InputError(f"{name} is empty.")
    return UsageLog(entries=tuple(entries), aside=tuple(aside))


def _entry(line: str) -> UsageEntry:
    if len(line) > MAX_LINE:
        raise ValueError(f"the line has {len(line)} characters, at most {MAX_LINE} are read")
    value: Any = parse_line(line)
    if not isinstance(value, dict) or "winnow_usage" not in value:
        raise ValueError("it is no line of a usage log")
    if value["winnow_usage"] != 1:
        raise ValueError(f"it is of usage format {str(value['winnow_usage'])[:20]}; this Winnow reads 1")
    check_strings(value, "The line")
    return UsageEntry.read(value, where="usage")
