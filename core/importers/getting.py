"""Getting at foreign values, which may have any type anywhere: what is not as it should be is nothing, no error."""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import JsonValue

from core.importers.attempt import Seen
from core.importers.json_text import written
from core.importers.source import bounded, storable
from core.record import unchecked

MAX_DEPTH = 60
"""How deep a foreign value may be nested; what lies deeper is told as `TOO_DEEP`."""

TOO_DEEP = "[nested too deeply]"

_WORDS = {
    "c": 1.0,
    "i": 0.0,
    "p": 0.5,
    "n": 0.0,
    "correct": 1.0,
    "incorrect": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "true": 1.0,
    "false": 0.0,
    "pass": 1.0,
    "passed": 1.0,
    "fail": 0.0,
    "failed": 0.0,
}
"""Words that stand for a score: the letters of Inspect AI (correct, incorrect, partial, no answer) and plain ones."""

_seen = unchecked(Seen)

_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)
_LONG = 10**15
"""A whole number of more digits is no count."""

_HUGE = 10**100
"""A whole number of more digits is no text."""

_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?", re.ASCII)


def as_dict(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """A string as it can be stored; a number or truth value as text (43.0 is "43"); everything else is ""."""
    if isinstance(value, str):
        text = value if value.isascii() else storable(value)
        return text.replace("\x00", "\ufffd") if "\x00" in text else text
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -_HUGE < value < _HUGE else ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return ""


def as_number(value: Any) -> float | None:
    """A finite number; None for all else: truth values, strings, NaN and infinity are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_int(value: Any) -> int | None:
    """A whole number of at most 15 digits; also one that is written as 3.0 or "3" (64-bit numbers come as strings)."""
    if type(value) is int:  # nearly all are
        return value if -_LONG < value < _LONG else None
    if isinstance(value, str):
        if not ((len(value) < 16 and value.isdecimal() and value.isascii()) or _WHOLE.fullmatch(value)):
            return None
    elif isinstance(value, float):
        if not value.is_integer():
            return None
    else:
        return None
    number = int(value)
    return number if -_LONG < number < _LONG else None


def as_json(value: Any, depth: int = MAX_DEPTH) -> JsonValue:
    """The value as JSON that can be stored: no NaN or infinity (None), no half surrogates, not nested too deeply."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(k)): as_json(v, depth - 1) for k, v in value.items()} if depth > 0 else TOO_DEEP
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) < value < 2**63 else float(value) if abs(value) < 10**300 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [as_json(v, depth - 1) for v in value] if depth > 0 else TOO_DEEP
    if isinstance(value, bytes):
        return storable(value.decode("utf-8", "replace"))
    return storable(value.isoformat() if hasattr(value, "isoformat") else str(value))


def as_said(value: Any) -> str:
    """Any value as text: a string as it is, null as "", all else as JSON."""
    if value is None or isinstance(value, str):
        return as_text(value)
    return written(as_json(value))


def as_seen(value: Any) -> Seen:
    """A value as a score: numbers and truth values as they are, words and percentages by our reading.

    None, NaN, infinity, lists, objects and unknown words are ungraded, never 0: "partly" is no number.

    >>> as_seen("C").value, as_seen("50 %").value, as_seen("nan").value
    (1.0, 0.5, None)
    """
    if isinstance(value, bool):
        return _seen(value=float(value))
    if isinstance(value, int | float):
        number = as_number(value)
        return _seen(value=number, raw="" if number is not None else str(value)[:200])
    raw = bounded(as_said(value), 180)
    if not isinstance(value, str):
        return _seen(raw=raw)
    text = value.strip()
    if text.lower() in _WORDS:
        return _seen(value=_WORDS[text.lower()], raw=raw, guessed=True)
    percent = text.removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(percent):
        return _seen(raw=raw)
    number = as_number(float(percent))
    if percent == text or number is None:
        return _seen(value=number, raw=raw)
    return _seen(value=number / 100, raw=raw, guessed=True)


def at(value: Any, *path: str | int) -> Any:
    """What stands at a path of keys and places; None where there is nothing, or something else on the way.

    >>> at({"a": [{"b": 1}]}, "a", 0, "b"), at({"a": 3}, "a", "b"), at(None, "a")
    (1, None, None)
    """
    for key in path:
        if value is None:
            return None
        if isinstance(key, int):
            if not isinstance(value, list) or not -len(value) <= key < len(value):
                return None
            value = value[key]
        else:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
    return value
