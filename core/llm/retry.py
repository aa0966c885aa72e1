"""How long a request waits by itself before it is made again (see `core.llm.pace` for what all wait for together)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0
"""A server that asks for more is asked again after this; the reply then fails, and a later run makes it good."""


def delay_s(attempt: int, rng: random.Random) -> float:
    """Seconds before attempt 1, 2, ...: exponential with full jitter.

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 (the variant "full jitter").
    """
    return rng.uniform(0, min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1)))


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the server asks to wait, in [0, LONGEST_RETRY_AFTER_S]; None where it says nothing usable.

    Args:
        headers: of the response; names in lower case, or a mapping that ignores case.
        now: UTC; used for an HTTP date when the server does not send its own `Date`.
    """
    wait = _number(headers.get("retry-after-ms"), 1e-3)
    if wait is None:
        wait = _number(headers.get("retry-after"), 1.0)
    if wait is None:
        until = _date(headers.get("retry-after"))
        if until is None:
            return None
        wait = (until - (_date(headers.get("date")) or now)).total_seconds()
    return min(max(wait, 0.0), LONGEST_RETRY_AFTER_S)


def _number(value: str | None, unit: float) -> float | None:
    try:
        number = float(value or "") * unit
    except ValueError:
        return None
    return number if number == number else None  # not NaN


def _date(value: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
