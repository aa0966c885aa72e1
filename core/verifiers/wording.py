"""The normal form in which answers are compared, and how words are found in it."""

from __future__ import annotations

import unicodedata

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212"
_APOSTROPHES = "'\u2019\u02bc"
_WORD_PARTS = set("-+.,'#%^/:*")
"""Signs that survive `normalise` inside a word or number: beside one of them a word does not end."""


def normalise(text: str) -> str:
    """The form in which wording is compared: NFKC, casefolded, punctuation and white space as single spaces.

    Kept, because they change what is said: the minus of a number, signs between digits (. , - / : *), `%`
    after a digit, `#` after a letter, the apostrophe between letters, and symbols (+, =, $, emoji). Idempotent.

    >>> normalise("  It’s **Paris**, -3.50 % of C#!")
    "it's paris -3.50 of c#"
    """
    for _ in range(8):  # twice is the rule; more only where characters unfold into one another
        after = _once(text)
        if after == text:
            break
        text = after
    return text


def _once(text: str) -> str:
    if text.isascii():
        text = text.lower()
    else:
        visible = (c for c in text if unicodedata.category(c) != "Cf")
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", "".join(visible)).casefold())
    last = len(text) - 1
    kept = [
        c if c.isalnum() else _kept(c, text[i - 1] if i else " ", text[i + 1] if i < last else " ")
        for i, c in enumerate(text)
    ]
    return " ".join("".join(kept).split())


def _kept(c: str, before: str, after: str) -> str:
    """What becomes of a character that is neither letter nor digit."""
    if c in _DASHES and after.isdecimal() and (before.isdecimal() or not before.isalnum()):
        return "-"
    if c in _APOSTROPHES and before.isalpha() and after.isalpha():
        return "'"
    if (
        (c in ".,/:*" and before.isdecimal() and after.isdecimal())
        or (c == "%" and before.isdecimal())
        or (c == "#" and before.isalpha())
        or c == "^"
    ):
        return c
    category = unicodedata.category(c)
    return " " if category[0] in "PZC" or category == "Sk" else c


def places(needle: str, text: str) -> list[tuple[int, int]]:
    """Where a normal form stands in another one as whole words: (start, end) each, not overlapping.

    Scripts that are written without spaces have no word boundaries to respect.
    """
    found = []
    start = text.find(needle) if needle else -1
    while start >= 0:
        end = start + len(needle)
        whole = _ends(needle[0], text[start - 1 : start]) and _ends(needle[-1], text[end : end + 1])
        if whole:
            found.append((start, end))
        start = text.find(needle, end if whole else start + 1)
    return found


def _ends(edge: str, neighbour: str) -> bool:
    """Whether a word that has `edge` as its outermost character may end beside `neighbour`."""
    if not neighbour or neighbour == " ":
        return True
    if _unspaced(edge) or _unspaced(neighbour):
        return True
    if neighbour.isalnum() or neighbour in _WORD_PARTS:
        return False
    return unicodedata.category(neighbour)[0] != "M"


def _unspaced(c: str) -> bool:
    """Chinese, Japanese, Korean (particles cling to words), Thai, Lao, Burmese, Khmer."""
    n = ord(c)
    return (
        0x2E80 <= n <= 0x9FFF
        or 0xAC00 <= n <= 0xD7AF
        or 0x0E00 <= n <= 0x0EFF
        or 0x1000 <= n <= 0x109F
        or 0x1780 <= n <= 0x17FF
        or 0x20000 <= n <= 0x3FFFF
    )
