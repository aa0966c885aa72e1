"""What the pages of the library read and name: its list, its size, its labels, and what audits look for."""

from __future__ import annotations

from functools import lru_cache

from core.audits import AUDITS, Audit, Rules, Suggestion
from core.compression import STRATEGIES
from core.library import Library
from core.review import library_tokens
from core.store import Store
from core.store.labels import Label
from core.store.library_pages import (
    Changes,
    Earnings,
    Facets,
    Given,
    GivenPage,
    LibraryPages,
    Shelf,
    ShelfOrder,
)
from core.store.search import Hit

__all__ = [
    "AUDITS",
    "STRATEGIES",
    "Audit",
    "Changes",
    "Earnings",
    "Facets",
    "Given",
    "GivenPage",
    "Hit",
    "Label",
    "LibraryPages",
    "Rules",
    "Shelf",
    "ShelfOrder",
    "Suggestion",
    "injected_tokens",
]

COUNTED = 1_000
"""Lessons whose tokens are counted; of more, so many are spread evenly over all."""


@lru_cache(maxsize=64)
def injected_tokens(store: Store, number: int) -> int:
    """Estimated tokens of a version when all of it is injected; of a large one a part is counted, and scaled.

    Raises:
        NotFoundError: there is no such version.
    """
    size = store.versions.get(number).size
    part = LibraryPages(store).sample(number, COUNTED) if size else []
    return round(library_tokens(Library.of(part)) * size / len(part)) if part else 0
