"""What the formats of tracing tools share."""

from __future__ import annotations

import pytest

from core.importers.traces import Part, most_frequent, within

PARENTS = {"root": "", "agent": "root", "tool": "agent", "call": "tool", "a": "b", "b": "a", "c": "a"}


@pytest.mark.parametrize(
    ("own", "inner", "lies_within"),
    [
        ("call", {"tool"}, True),
        ("call", {"agent"}, True),
        ("tool", {"tool"}, False),
        ("agent", {"tool"}, False),
        ("root", {"root"}, False),
        ("elsewhere", {"root"}, False),
        ("a", {"a"}, False),
        ("a", {"b"}, True),
        ("c", {"root"}, False),
    ],
)
def test_a_span_lies_within_those_above_it_though_parents_go_round_in_circles(
    own: str, inner: set[str], lies_within: bool
) -> None:
    assert within(own, PARENTS, inner) is lies_within


def test_the_most_frequent_name_is_the_first_of_equals_and_no_name_counts_for_nothing() -> None:
    assert most_frequent(["", "", "", "b", "a", "a", "b"]) == "b"
    assert most_frequent(["", ""]) == most_frequent([]) == ""


@pytest.mark.parametrize(
    ("begun", "ended", "seconds"),
    [(10.0, 12.5, 2.5), (10.0, None, None), (None, 12.5, None), (12.5, 10.0, None)],
)
def test_a_part_tells_how_long_it_took_only_where_its_times_can_be_right(
    begun: float | None, ended: float | None, seconds: float | None
) -> None:
    assert Part("a", "", "tool", begun, ended, {}).duration_s == seconds
