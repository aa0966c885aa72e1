"""Records are put together by their key, in memory or on disk."""

from __future__ import annotations

import pytest

from core.importers.bundles import Bundles
from core.importers.times import moment, span_of

RECORDS = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)]


@pytest.mark.parametrize("limit", [10**6, 25, 0])
def test_keys_come_in_the_order_of_their_first_record_and_records_in_that_of_the_file(limit: int) -> None:
    bundles = Bundles(limit)
    for key, number in RECORDS:
        bundles.add(key, f"line {number}", {"n": number, "text": "\u2028\n", "half": "\ud800"}, 10)
    told = [(bundle.key, bundle.place, [record["n"] for record in bundle.records]) for bundle in bundles]
    assert told == [("a", "line 1", [1, 3, 6]), ("b", "line 2", [2, 5]), ("c", "line 4", [4])]


def test_what_lies_on_disk_comes_back_as_it_was() -> None:
    bundles = Bundles(limit=0)
    record = {"text": "\u2028\n", "half": "\ud800", "number": 1e300, "list": [None, True]}
    bundles.add("a", "line 7", record, 1)
    assert list(bundles) == [("a", "line 7", [record])]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2026-01-02T03:04:05Z", 1767323045.0),
        ("2026-01-02T03:04:05.500+00:00", 1767323045.5),
        ("2026-01-02 03:04:05", 1767323045.0),
        (1767323045, 1767323045.0),
        (1767323045500, 1767323045.5),
        (1767323045500000, 1767323045.5),
        ("1767323045500000000", 1767323045.5),
        ("", None),
        ("yesterday", None),
        (True, None),
        (float("nan"), None),
        (-5, None),
        (None, None),
        ({"seconds": 1}, None),
        ("9" * 30, None),
    ],
)
def test_a_time_is_read_in_whichever_way_it_is_written(value: object, seconds: float | None) -> None:
    assert moment(value) == seconds


def test_a_span_knows_its_length_and_its_beginning() -> None:
    assert span_of(["2026-01-02T03:04:05Z", None, "x", 1767323044]) == (1.0, "2026-01-02T03:04:04+00:00")
    assert span_of(["x"]) == (None, "")
