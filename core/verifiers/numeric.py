"""A number, within a tolerance. Text is parsed, never evaluated."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from pydantic import Field

from core.rollout import Score, Task
from core.verifiers.check import Check, quote

_MINUS = "-\u2212\u2013\u2012\uff0d\ufe63"
_NUMBER = re.compile(
    rf"""
    (?:(?<![\w.)\]])(?P<sign>[+{_MINUS}])\s?)?      # a sign, but not the minus of 5-3
    [$€£¥]?
    (?<![\w.])                                      # not the 2 of H2O, not the 3 of 1.2.3
    (?P<digits>
        [0-9]{{1,3}}(?:\.[0-9]{{3}})+,[0-9]+        # 1.234,56
      | [0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?
      | [0-9]{{1,3}}(?:['’_\u00a0\u202f\u2009][0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?
      | [0-9]+(?:\.[0-9]+)?
      | \.[0-9]+
    )
    (?:[eE](?P<exponent>[+\-\u2212]?[0-9]+)
      |\s?[x×*·]\s?10\s?\^\s?\{{?(?P<power>[+\-\u2212]?[0-9]+)\}}?)?
    (?!\.?[0-9]|[⁰¹²³⁴-⁹])                           # not a version number, not 10²
    \s?(?P<percent>[%％])?
    """,
    re.VERBOSE,
)
_MAX_DIGITS = 400


@dataclass(frozen=True)
class Number:
    """A number as it was written."""

    value: Decimal
    percent: bool = False


def numbers_in(text: str) -> list[Number]:
    """Every number of a text, in order: signs, thousands separators, decimals, exponents, percent signs.

    A plain space or a lone comma does not join digits ("1 000" and "3,5" are two numbers each), since both
    also separate lists. Digits inside words (H2O), versions (1.2.3) and powers (10²) are no numbers.

    >>> [str(n.value) for n in numbers_in("−1,234.50 of 2e3")]
    ['-1234.50', '2E+3']
    """
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return [number for match in _NUMBER.finditer(text) if (number := _read(match)) is not None]


def _read(match: re.Match[str]) -> Number | None:
    digits = match["digits"]
    if re.fullmatch(r"[0-9.]+\.[0-9]{3},[0-9]+", digits):
        digits = digits.replace(".", "").replace(",", ".")
    digits = re.sub(r"[^0-9.]", "", digits)
    exponent = (match["exponent"] or match["power"] or "0").replace("\u2212", "-")
    if len(digits) > _MAX_DIGITS or len(exponent) > 6:
        return None
    try:
        value = Decimal(f"{digits}e{exponent}")
    except InvalidOperation:
        return None
    return Number(
        -value if match["sign"] and match["sign"] in _MINUS else value, match["percent"] is not None
    )


class Numeric(Check):
    """1 where the number of the answer is the right one.

    That is, |x - right| <= max(tolerance, relative * |right|).
    Where only one of the two carries a percent sign, 50 % counts as 50 and as 0.5.
    """

    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    relative: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Share of the right number."""
    pick: Literal["only", "first", "last"] = "only"
    """Which number of the answer counts; `only`: all of them must be one and the same."""

    def ready(self, task: Task) -> None:
        if len(numbers_in(task.answer or "")) != 1:
            raise ValueError(f"the answer {quote(task.answer or '')} is not one number")

    def judge(self, task: Task, answer: str) -> Score:
        right, found = numbers_in(task.answer or "")[0], numbers_in(answer)
        if not found:
            return Score(value=0.0, reason="the answer holds no number")
        if self.pick == "only" and len({n.value for n in found}) > 1:
            few = ", ".join(quote(str(n.value), 30) for n in found[:4])
            return Score(value=0.0, reason=f"the answer holds several numbers: {few}")
        given = found[-1] if self.pick == "last" else found[0]
        if self._agree(given, right):
            return Score(value=1.0)
        return Score(value=0.0, reason=f"expected {right.value!s:.40}, got {given.value!s:.40}")

    def _agree(self, given: Number, right: Number) -> bool:
        if self._near(given.value, right.value):
            return True
        if given.percent == right.percent:
            return False
        hundred = Decimal(100)
        if given.percent:
            return self._near(given.value / hundred, right.value)
        return self._near(given.value, right.value / hundred)

    def _near(self, given: Decimal, right: Decimal) -> bool:
        if given == right:
            return True
        margin = max(Decimal(repr(self.tolerance)), Decimal(repr(self.relative)) * abs(right))
        return margin > 0 and abs(given - right) <= margin
