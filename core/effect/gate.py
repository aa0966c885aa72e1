"""The gate `trial`: which of the lessons tried together are let through (DESIGN 2.10)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from core.effect.correction import benjamini_hochberg

GATE_LEVEL = 0.10
"""One-sided level of the gate, held over all lessons tried together."""

ROUNDING = 1e-12
"""P values are fractions: one that lies exactly at its limit passes, however it was rounded on the way."""

Key = TypeVar("Key", bound=Hashable)


def gate(p_values: Mapping[Key, float], *, level: float = GATE_LEVEL) -> Mapping[Key, bool]:
    """Tell which lessons pass, from the one-sided p value of each (`Paired.p_greater`).

    Benjamini-Hochberg over all: a lesson that was tried and is left out here would make the others look better than
    they are.

    Args:
        p_values: by lesson, of every lesson that was tried; 1 for one that was stopped without a result.
        level: the share of null lessons among those that pass is at most this, on average.
    """
    adjusted = benjamini_hochberg(list(p_values.values()))
    return {key: q <= level + ROUNDING for key, q in zip(p_values, adjusted, strict=True)}
