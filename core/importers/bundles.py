"""Records that belong together but do not stand together in a file: put together by a key, in bounded memory."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator
from typing import IO, Any

LIMIT = 32_000_000
"""Bytes of records (as they stood in the file) that are held in memory; more go to a temporary file."""


class Bundles:
    """Records by key. Keys come out in the order in which they were first seen, records in the order of the file.

    A file may hold many traces whose spans are interleaved, and be larger than the memory: beyond `limit` bytes all
    records lie in a temporary file, and one bundle at a time is read back.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._size = 0
        self._held: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
        self._file: IO[bytes] | None = None
        self._places: dict[str, array[int]] = {}

    def add(self, key: str, number: int, record: Any, size: int) -> None:
        """Put a record to its bundle.

        Args:
            key: of the bundle.
            number: where the record stands in the file (its line, from 1).
            record: a JSON value.
            size: bytes of the record as it stood in the file.
        """
        self._held[key].append((number, record))
        self._size += size
        if self._size > self._limit:
            self._spill()

    def __iter__(self) -> Iterator[tuple[str, list[tuple[int, Any]]]]:
        """(key, [(number, record), ...]); each bundle is given away, so that it can be freed."""
        if self._file is None:
            while self._held:
                key = next(iter(self._held))
                yield key, self._held.pop(key)
            return
        self._spill()
        for key, places in self._places.items():
            yield key, [self._back(offset) for offset in places]
        self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="winnow-")  # noqa: SIM115 (lives as long as the bundles)
        for key, records in self._held.items():
            places = self._places.setdefault(key, array("q"))
            for record in records:
                places.append(self._file.tell())
                self._file.write(json.dumps(record).encode() + b"\n")
        self._held.clear()
        self._size = 0

    def _back(self, offset: int) -> tuple[int, Any]:
        assert self._file is not None
        self._file.seek(offset)
        number, record = json.loads(self._file.readline())
        return number, record
