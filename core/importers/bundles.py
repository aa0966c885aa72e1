"""Records that belong together but do not stand together in a file: put together by a key, in bounded memory."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import IO, Any, NamedTuple

LIMIT = 32_000_000
"""Bytes of records (as they stood in the file) that are held in memory; more go to a temporary file."""


class Bundle(NamedTuple):
    """Records that belong together."""

    key: str
    place: str
    """Where the first of them stands."""
    records: list[Any]


class Bundles:
    """Records by key. Keys come out in the order in which they were first seen, records in the order of the file.

    A file may hold many traces whose spans are interleaved, and be larger than the memory: beyond `limit` bytes all
    records lie in a temporary file, and one bundle at a time is read back.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._places: dict[str, str] = {}
        self._held: defaultdict[str, list[Any]] = defaultdict(list)
        self._file: IO[bytes] | None = None
        self._offsets: defaultdict[str, array[int]] = defaultdict(partial(array, "q"))

    def add(self, key: str, place: str, record: Any, size: int) -> None:
        """Put a record to its bundle.

        Args:
            key: of the bundle.
            place: where the record stands in the file, for people; that of its first record is the bundle's.
            record: a JSON value.
            size: bytes of the record as it stood in the file.
        """
        if key not in self._places:
            self._places[key] = place
        self._held[key].append(record)
        self._size += size
        if self._size > self._limit:
            self._spill()

    def __iter__(self) -> Iterator[Bundle]:
        """All bundles; each is given away, so that it can be freed."""
        if self._file is not None:
            self._spill()
        for key, place in self._places.items():
            records = self._held.pop(key) if self._file is None else list(map(self._back, self._offsets[key]))
            yield Bundle(key, place, records)
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="winnow-")  # noqa: SIM115 (lives as long as the bundles)
        for key, records in self._held.items():
            offsets = self._offsets[key]
            for record in records:
                offsets.append(self._file.tell())
                self._file.write(json.dumps(record).encode() + b"\n")
        self._held.clear()
        self._size = 0

    def _back(self, offset: int) -> Any:
        assert self._file is not None
        self._file.seek(offset)
        return json.loads(self._file.readline())
