"""What surely says the opposite, and what only sounds so."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.extraction import wording
from core.extraction.wording import opposed

OPPOSITES = [
    ("Give the number alone, without a unit.", "Give the number with its unit."),
    ("Answer without a full stop at the end.", "Answer with a full stop at the end."),
    ("Call read_json before write_json.", "Call write_json before read_json."),
    ("Call read_json, then write_json.", "Call write_json, then read_json."),
    ("Start with the answer.", "End with the answer."),
    ("Begin each line with a dash.", "Finish each line with a dash."),
    ("Answer first, explain later.", "Explain first, answer later."),
    ("Answer first, then explain.", "Explain first, then answer."),
    ("Always retry.", "Avoid retrying."),
    ("Always retry a failed call.", "Avoid retrying failed calls."),
    ("Use JSON.", "Avoid JSON."),
    ("Use the calculator.", "Never use a calculator."),
    ("Read the file before you answer.", "Read the file after you answer."),
    ("Convert metres to feet.", "Convert feet to metres."),
    ("Put the total above the table.", "Put the total below the table."),
    ("Allow empty cells in the table.", "Reject empty cells in the table."),
    ("Write names in uppercase.", "Write names in lowercase."),
    ("Sort ascending.", "Sort descending."),
    ("Keep the currency sign.", "Remove the currency sign."),
    ("Answer with three words.", "Answer with 4 words."),
    ("Put quotes around it.", "Do not put quotes around it."),
]
NOT_OPPOSITES = [
    ("Before you answer, read the file.", "Read the file before you answer."),
    ("Answer after you read the file.", "Read the file before you answer."),
    ("If the file is missing, say so.", "Say so if the file is missing."),
    ("Answer first, then explain.", "First answer, then explain."),
    ("Explain later, answer first.", "Answer first, explain later."),
    ("Answer with only one word.", "Answer with one word only."),
    ("Return name and age.", "Return age and name."),
    ("Answer with the number only.", "Answer without any words around the number."),
    ("Start with a capital letter.", "End with a period."),
    ("Use one word.", "Use 1 word, no more."),
    ("Read the file first.", "Read the file."),
    ("Use the tool.", "Use a tool."),
    ("Always check the sum.", "Check the sum."),
]


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(wording).failed == 0


@pytest.mark.parametrize(("a", "b"), OPPOSITES)
def test_what_says_the_opposite_is_opposed_whichever_comes_first(a: str, b: str) -> None:
    assert opposed(a, b)
    assert opposed(b, a)


@pytest.mark.parametrize(("a", "b"), NOT_OPPOSITES)
def test_what_says_the_same_or_something_else_is_not_opposed(a: str, b: str) -> None:
    assert not opposed(a, b)
    assert not opposed(b, a)


VOCABULARY = (
    "read the file before after first last with without a unit not never 3 and , start end use it. if"
)
WORDS = st.lists(st.sampled_from(VOCABULARY.split()), max_size=10).map(" ".join)


@given(WORDS)
def test_no_text_is_the_opposite_of_itself(text: str) -> None:
    assert not opposed(text, f"  {text.upper()} ")


@given(WORDS, WORDS)
def test_being_opposed_is_mutual(a: str, b: str) -> None:
    assert opposed(a, b) is opposed(b, a)
