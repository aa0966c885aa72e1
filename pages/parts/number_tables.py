"""Tables of numbers; what is wider than a phone scrolls by itself."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import safe
from pages.parts.safe import Markup, joined, markup

WIDE = 7
"""Columns from which a table is wider than a phone, and scrolls by itself."""
Cell = tuple[str, object]
"""Look and content; the look `num` stands right."""


def draw(head: Sequence[tuple[str, str]], rows: Sequence[Markup]) -> None:
    """A table.

    Args:
        head: name and look of each column.
        rows: made by `row`.
    """
    top = joined(markup('<th class="{look}">{name}</th>', look=look, name=name) for name, look in head)
    safe.html(
        '<div class="w-scroll"><table class="w-table {look}"><tr>{top}</tr>{rows}</table></div>',
        look="w-wide" if len(head) >= WIDE else "",
        top=top,
        rows=joined(rows),
    )


def row(*cells: Cell) -> Markup:
    return markup(
        "<tr>{cells}</tr>",
        cells=joined(
            markup('<td class="{look}">{value}</td>', look=look, value=value) for look, value in cells
        ),
    )
