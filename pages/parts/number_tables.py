"""Tables of numbers; what is wider than a phone scrolls by itself."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import safe
from pages.parts.safe import Markup, joined, markup

WIDE = 7
"""Columns from which a table is wider than a phone, and scrolls by itself."""
HEAD = 24
"""Characters of the name of a column; a longer one, such as an arm's, is told whole as its title."""
Cell = tuple[str, object]
"""Look and content; the look `num` stands right."""


def draw(head: Sequence[tuple[str, str]], rows: Sequence[Markup]) -> None:
    """A table.

    Args:
        head: name and look of each column.
        rows: made by `row`.
    """
    top = joined(
        markup(
            '<th class="{look}" title="{name}">{short}</th>',
            look=look,
            name=name,
            short=safe.short(name, HEAD),
        )
        if len(name) > HEAD
        else markup('<th class="{look}">{name}</th>', look=look, name=name)
        for name, look in head
    )
    safe.html(
        '<div class="w-scroll"><table class="w-table {look}"><tr>{top}</tr>{rows}</table></div>',
        look="w-wide" if len(head) >= WIDE else "",
        top=top,
        rows=joined(rows),
    )


def name(of: str, *, sign: str = "", note: str = "") -> Markup:
    """The cell that a row goes by: a long name is cut to two lines, and told whole as its title."""
    return markup(
        '<div class="w-name" title="{of}">{sign}<b>{of}</b></div>{note}',
        of=of,
        sign=f"{sign}\N{NO-BREAK SPACE}" if sign else "",
        note=markup('<div class="w-note" title="{note}">{note}</div>', note=note) if note else Markup(),
    )


def row(*cells: Cell) -> Markup:
    return markup(
        "<tr>{cells}</tr>",
        cells=joined(
            markup('<td class="{look}">{value}</td>', look=look, value=value) for look, value in cells
        ),
    )
