"""What the shared page of a report is made of: its style, tables, intervals as a picture, numbers. No script at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from core.proof import Comparison, Effect

STYLE = """
:root{color-scheme:light dark;--ink:light-dark(#27231c,#ece7db);--soft:light-dark(#6d6555,#a89f8d);
--line:light-dark(#e2dacb,#3b362c);--paper:light-dark(#fdfbf7,#1a1814);--accent:light-dark(#95570c,#e0a458);
--grain:light-dark(#bd7a1d,#d0913a);--chaff:light-dark(#75828f,#8b98a5);--bad:light-dark(#a3341f,#f0a08f)}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2.5rem auto;max-width:66rem;
padding:0 1.1rem}
h1,h2{font-family:Georgia,serif;font-weight:600;line-height:1.2;overflow-wrap:anywhere}
h1{font-size:2rem;margin:0 0 .4rem}
h2{font-size:1.3rem;margin:2.2rem 0 .5rem}
.lead,.note,footer{color:var(--soft)}
.note,footer{font-size:.88rem}
ul{list-style:none;padding:0;margin:.6rem 0}
li{margin:.4rem 0;padding-left:.8rem;border-left:3px solid var(--chaff);overflow-wrap:anywhere}
ul.plain li{border:0;padding:0}
li.better{border-left-color:var(--grain)}
li.worse{border-left:3px double var(--bad)}
.flag{border-left:4px solid var(--accent);padding:.2rem .8rem;margin:.6rem 0}
.wide{overflow-x:auto;margin:.4rem 0 1rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.35rem .6rem .35rem 0;text-align:left;vertical-align:top}
th{font-size:.8rem;color:var(--soft);white-space:nowrap}
.n{text-align:right;white-space:nowrap}
.q{min-width:14rem;overflow-wrap:anywhere}
svg{display:block}
svg text{font:13px system-ui,sans-serif;fill:var(--ink)}
svg .zero{stroke:var(--chaff);stroke-dasharray:3 3}
svg .unclear{stroke:var(--chaff);fill:var(--paper)}
svg .better{stroke:var(--grain);fill:var(--grain)}
svg .worse{stroke:var(--bad);fill:var(--bad)}
summary{cursor:pointer;color:var(--accent)}
"""
HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width">'
)
SIGNS = {"better": "▲", "worse": "▼", "unclear": "◇"}

Column = tuple[str, str]
"""Name and look: `n` of numbers, `q` of long text."""


def table(head: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """A table; every cell is escaped."""
    top = "".join(f'<th class="{look}">{escape(name)}</th>' for name, look in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{look}">{escape(cell)}</td>' for cell, (_, look) in zip(row, head, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def verdict(effect: Effect) -> str:
    """What the interval says: `better`, `worse`, or `unclear`."""
    if effect.low is None or effect.high is None:
        return "unclear"
    return "better" if effect.low > 0 else "worse" if effect.high < 0 else "unclear"


def forest(comparisons: Sequence[Comparison]) -> str:
    """The differences with their intervals, as a picture: to the right of 0 it is better."""
    drawn = [c for c in comparisons if c.effect.mean is not None]
    if not drawn:
        return ""
    ends = [abs(v) for c in drawn for v in (c.effect.mean, c.effect.low, c.effect.high) if v is not None]
    most = max([*ends, 0.05]) * 1.1
    left, width, height = 260.0, 420.0, 30.0

    def at(value: float) -> float:
        return left + width * (value + most) / (2 * most)

    lines = []
    for i, c in enumerate(drawn):
        y = height * (i + 0.7)
        mean = c.effect.mean or 0.0
        low, high = (mean if v is None else v for v in (c.effect.low, c.effect.high))
        look = verdict(c.effect)
        lines.append(
            f'<text x="0" y="{y + 4:.1f}">{escape(c.arm[:34])}</text><g class="{look}" stroke-width="2">'
            f'<line x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<circle cx="{at(mean):.1f}" cy="{y:.1f}" r="5"/></g>'
            f'<text x="{left + width + 12:.0f}" y="{y + 4:.1f}">{SIGNS[look]} {mean:+.3f}</text>'
        )
    tall = height * (len(drawn) + 1)
    axis = (
        f'<line class="zero" x1="{at(0):.1f}" x2="{at(0):.1f}" y1="0" y2="{tall - 18:.1f}"/>'
        f'<text x="{at(0):.1f}" y="{tall - 4:.1f}" text-anchor="middle">worse ← 0 → better</text>'
    )
    wide = left + width + 90
    return (
        f'<div class="wide"><svg viewBox="0 0 {wide:.0f} {tall:.0f}" width="{wide:.0f}" role="img"'
        f' aria-label="Differences with 95 % intervals">{axis}{"".join(lines)}</svg></div>'
    )


def number(value: float | None, *, sign: bool = False) -> str:
    """A number as it is shown; a dash where there is none."""
    return "-" if value is None else f"{value:+.3f}" if sign else f"{value:.3f}"


def chance(p: float | None) -> str:
    """A p value as it is shown; it is never 0."""
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def span(effect: Effect) -> str:
    """The interval as it is shown."""
    if effect.low is None or effect.high is None:
        return "-"
    return f"{effect.low:+.3f} to {effect.high:+.3f}"
