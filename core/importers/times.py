"""Points in time as foreign files write them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from core.importers.getting import as_number


def moment(value: Any) -> float | None:
    """Seconds since 1970: of an ISO 8601 time (UTC where it names no zone), or of a number since 1970.

    A number is in seconds, milliseconds, microseconds or nanoseconds, by its size; it may be written as text.
    None for everything else.

    >>> moment("1970-01-01T00:00:02Z"), moment("2000000000000"), moment("soon"), moment(True)
    (2.0, 2000000000.0, None, None)
    """
    if isinstance(value, str):
        if len(value) > 20 or not value.isdecimal():
            return _of_text(value)
        number: float | None = float(value)
    elif isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    else:
        number = as_number(value)
    if number is None or not 0 < number < 1e20:
        return None
    return number / (1e9 if number > 1e17 else 1e6 if number > 1e14 else 1e3 if number > 1e11 else 1.0)


@lru_cache(maxsize=2_000)  # a trace's times are asked for by several
def _of_text(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def span_of(values: Iterable[Any]) -> tuple[float | None, str]:
    """How many seconds lie between the first and the last of some times, and the first as text (UTC)."""
    return between(map(moment, values))


def between(moments: Iterable[float | None]) -> tuple[float | None, str]:
    """How many seconds lie between the first and the last of some moments, and the first as text (UTC)."""
    known = [m for m in moments if m is not None]
    if not known:
        return None, ""
    first = min(known)
    try:
        begun = datetime.fromtimestamp(first // 1, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        begun = ""
    return round(max(known) - first, 3), begun
