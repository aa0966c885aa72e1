"""What the shared page of a report is made of: its style, tables, intervals as a picture, numbers. No script at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from core.proof import Effect

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
.iv{position:relative;height:1.1rem;max-width:44rem;color:var(--chaff)}
.iv.better{color:var(--grain)}
.iv.worse{color:var(--bad)}
.iv span{position:absolute;background:currentColor}
.iv .zero{left:50%;top:0;bottom:0;width:1px;background:var(--chaff)}
.iv .bar{top:.5rem;height:2px}
.iv .dot{top:.22rem;width:.65rem;height:.65rem;margin-left:-.33rem;border-radius:50%}
.iv.worse .dot{border-radius:0;transform:rotate(45deg)}
.iv.unclear .dot{background:var(--paper);box-shadow:inset 0 0 0 2px currentColor}
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


def reach(effects: Iterable[Effect]) -> float:
    """How far to both sides of 0 a picture goes that shows all of these."""
    ends = [abs(v) for e in effects for v in (e.mean, e.low, e.high) if v is not None]
    return max([*ends, 0.05]) * 1.1


def strip(effect: Effect, most: float) -> str:
    """A difference with its interval, as a picture: to the right of 0 it is better.

    Args:
        effect: what is drawn; nothing where it has no difference.
        most: how far the picture goes to both sides (`reach`).
    """
    if effect.mean is None:
        return ""
    low, high = (effect.mean if v is None else v for v in (effect.low, effect.high))

    def at(value: float) -> float:
        return 50 + 50 * value / most

    return (
        f'<div class="iv {verdict(effect)}" aria-hidden="true"><span class="zero"></span>'
        f'<span class="bar" style="left:{at(low):.1f}%;width:{at(high) - at(low):.1f}%"></span>'
        f'<span class="dot" style="left:{at(effect.mean):.1f}%"></span></div>'
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
