"""JSON that is read and written quickly is the JSON that `json` reads and writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.importers.json_text import parsed, quick, written

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
PIECES = st.sampled_from(
    [
        *(
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            '"a"',
            '"a":1',
            "-",
            "0",
            "1",
            "12345678901234567890",
            ".5",
            "e9",
            "E-400",
        ),
        *(
            "1e400",
            "NaN",
            "-Infinity",
            "true",
            "nul",
            " ",
            "\t",
            "\\u",
            "\\ud800",
            "\\udc00",
            "\\n",
            "\x00",
            "\ufeff",
        ),
        *("é", "\u2028", "\ud800", "/"),
    ]
)


def outcome(read: Callable[[Any], Any], text: Any) -> str:
    """What came of reading; as text, in which NaN is NaN, 1 is not 1.0, and members have an order."""
    try:
        return repr(read(text))
    except (ValueError, RecursionError) as e:
        return f"{type(e).__name__}: {e}"


@given(VALUES, st.booleans())
def test_every_value_is_read_as_json_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)

    assert outcome(parsed, text) == outcome(json.loads, text)


@given(VALUES)
def test_every_value_is_written_as_json_writes_it(value: Any) -> None:
    assert written(value) == json.dumps(value, ensure_ascii=False)


def test_what_is_no_json_is_not_written() -> None:
    with pytest.raises(TypeError, match="set is not JSON serializable"):
        written([{1, 2}])


def test_what_holds_itself_is_not_written() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(RecursionError):
        written(circle)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_every_text_is_read_or_refused_as_json_does_it(text: str) -> None:
    assert outcome(parsed, text) == outcome(json.loads, text)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_what_is_read_quickly_of_bytes_is_what_json_reads_of_their_text(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    try:
        value = quick(data)
    except ValueError:
        return

    assert repr(value) == repr(json.loads(data.decode("utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": 2, "a": 3}',
        "[18446744073709551616, -9223372036854775809, 123456789012345678901234567890]",
        "[NaN, Infinity, -Infinity, 1e400, -0.0, -0, 1E5, 9007199254740993.0]",
        '["\\ud83d\\ude00", "\\ud800", "\\u0000"]',
        "1" * 5_000,
        "[" * 500 + "]" * 500,
    ],
)
def test_what_parsers_differ_in_is_read_as_json_reads_it(text: str) -> None:
    assert outcome(parsed, text) == outcome(json.loads, text)
