"""What a word is, and when two texts are the same lesson."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import words
from core.words import count_words, normalise

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
RAW_TEXTS = st.text(st.sampled_from("aB1 .!-*•\"'`“”‘’＂＇²½ǅİß\n\u3000"), max_size=30)
LATIN_WORDS = st.lists(
    st.text("abcxyz019_./()", min_size=1, max_size=8).filter(lambda run: any(c.isalnum() for c in run)),
    max_size=50,
)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(words).attempted >= 6
    assert doctest.testmod(words).failed == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("  \n\t ", 0),
        ("one", 1),
        ("don't stop", 2),
        ("https://example.org/a/b?c=d&e=f#g", 1),
        ("xs[i]=f(x,y)**2", 1),
        ("1,234,567.89", 1),
        ("-> ... -- ( )", 0),
        ("a — b—c", 3),
        ("先读取文件", 5),
        ("先用read_json读取", 5),
        ("ひらがなとカタカナ", 9),
        ("ラーメン・うどん", 7),
        ("먼저 파일을 읽어라", 3),
        ("👍", 1),
        ("👍👍🏽", 1),
        ("👩‍👩‍👧‍👦 ok", 2),
        ("ตรวจสอบ", 2),
        ("قرأ الملف", 2),
        ("one\u00a0two\u3000three", 3),
        ("zero\u200bwidth\u2060space", 3),
        ("soft\u00adhyphen", 2),
        ("می\u200cخواهم", 1),
        ("क्\u200dष", 1),
        ("❤\ufe0f", 1),
    ],
)
def test_words_are_counted_by_the_documented_rule(text: str, expected: int) -> None:
    assert count_words(text) == expected


@pytest.mark.parametrize(
    "c", [*"\u00ad\u034f\u115f\u200b\u200c\u200d\u200e\u202e\u2060\u2066\u2800\u3164\ufe0f\ufeff\U000e0061"]
)
def test_fifty_words_joined_by_what_nobody_sees_are_fifty_words(c: str) -> None:
    assert count_words(c.join(["word"] * 50)) == 50


@given(LATIN_WORDS)
def test_words_between_spaces_count_one_each(parts: list[str]) -> None:
    assert count_words(" ".join(parts)) == len(parts)


@given(TEXTS, TEXTS)
def test_counts_of_two_texts_add_up(first: str, second: str) -> None:
    assert count_words(f"{first}\n{second}") == count_words(first) + count_words(second)


@given(TEXTS | RAW_TEXTS)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(LATIN_WORDS)
def test_case_and_spacing_do_not_make_another_lesson(parts: list[str]) -> None:
    assert normalise("  ".join(parts).upper()) == normalise(" ".join(parts))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Read the file first.", "read the file first"),
        ("Read the file first!!", "- Read  the file\nfirst"),
        ("Ｒｅａｄ the file", "read the file"),
        ('"Read the file first."', "Read the file first"),
        ("Straße zuerst", "STRASSE zuerst"),
    ],
)
def test_the_same_lesson_is_recognised(first: str, second: str) -> None:
    assert normalise(first) == normalise(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Answer `Yes`", "Answer `yes`"),
        ('Answer "Yes" in English', 'Answer "YES" in English'),
        ("Answer 'Yes'", "Answer 'yes'"),
        ('Join with "  "', 'Join with " "'),
        ("End with .", "End with !"),
        ('End with ".".', 'End with "!".'),
        ("Raise it to 2⁵", "Raise it to 25"),
        ("-5 is allowed", "5 is allowed"),
        ("1½ spoons", "11/2 spoons"),
    ],
)
def test_a_lesson_that_means_something_else_is_another_one(first: str, second: str) -> None:
    assert normalise(first) != normalise(second)


def test_the_examples_in_the_manual_hold() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+)` \| (\d+) \|", manual, re.MULTILINE)
    assert len(rows) >= 15
    assert {text: count_words(text) for text, _ in rows} == {text: int(words) for text, words in rows}
