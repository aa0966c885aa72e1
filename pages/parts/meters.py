"""What was spent, against what may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pages.parts import progress, safe
from pages.parts.safe import Markup, joined, markup

FULL = 0.9
"""From this share on a meter is marked."""


class Meter(NamedTuple):
    """One sum with its cap."""

    name: str
    value: float
    cap: float | None
    written: Callable[[float], str]
    """How its numbers are written."""


def draw(meters: Sequence[Meter], *, capped: bool) -> None:
    """Sums side by side, each with a bar where it has a cap.

    Args:
        meters: the sums.
        capped: whether they can have caps: it is said then where one has none.
    """
    cells = joined(_cell(meter, capped) for meter in meters)
    safe.html('<div class="w-meters">{cells}</div>', cells=cells)


def _cell(meter: Meter, capped: bool) -> Markup:
    value = meter.written(meter.value)
    if meter.cap is None:
        return markup(
            '<div class="w-meter"><b>{value}</b> <span>{name}</span></div>',
            value=value,
            name=f"{meter.name}, no cap" if capped else meter.name,
        )
    share = min(1.0, meter.value / meter.cap) if meter.cap else 1.0
    return markup(
        '<div class="w-meter {look}"><b>{value}</b> <span>{name}</span><span class="cap">of {cap} · {percent}%</span>'
        "{bar}</div>",
        look="full" if share >= FULL else "",
        value=value,
        name=meter.name,
        cap=meter.written(meter.cap),
        percent=f"{100 * share:.0f}",
        bar=progress.bar(share, 1, f"{meter.name} of its cap", role="meter"),
    )
