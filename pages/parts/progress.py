"""How far something is, as one bar."""

from __future__ import annotations

from typing import Literal

from pages.parts.safe import Markup, markup


def bar(
    done: float,
    total: float,
    said: str = "How far it is",
    *,
    role: Literal["progressbar", "meter"] = "progressbar",
) -> Markup:
    """A share of a whole; a whole of 0 has no share yet.

    Args:
        done: how much of it.
        total: the whole.
        said: what it is, for who does not see the bar.
        role: `meter` where it measures something that is not work.
    """
    share = min(1.0, max(0.0, done / total)) if total else 0.0
    return markup(
        '<div class="w-progress" role="{role}" aria-valuenow="{percent}" aria-valuemin="0" aria-valuemax="100"'
        ' aria-label="{said}"><i style="width:{percent}%"></i></div>',
        role=role,
        percent=f"{100 * share:.0f}",
        said=said,
    )
