"""Tables of numbers that are wider than a phone: they scroll by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import safe
from pages.parts.safe import Markup, joined, markup

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
        '<div class="w-scroll"><table class="w-table w-wide"><tr>{top}</tr>{rows}</table></div>',
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
