"""Measured effects on the screen: an interval that is read at a glance, and what was measured of one thing.

Better, worse and unclear are told by a sign, a word and the shape of the mark; colour only adds to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from core.proof import Effect, EvaluationFilter, Measured
from core.workspace import Workspace
from pages.parts import frame, safe, words
from pages.parts.safe import Markup, joined, markup

Verdict = Literal["better", "worse", "unclear", "none"]
SAID: dict[Verdict, tuple[str, str, str]] = {
    "better": ("▲", "better", "good"),
    "worse": ("▼", "worse", "bad"),
    "unclear": ("◇", "not clear", "quiet"),
    "none": ("–", "too few tasks", "quiet"),
}
"""Sign, word and tone."""
LEAST_REACH = 0.1
"""An axis goes at least so far to both sides: small differences look small."""
SHOWN = 5


def verdict(effect: Effect) -> Verdict:
    """What the 95 % interval says: it lies above 0, below 0, or does not tell."""
    if effect.mean is None or effect.low is None or effect.high is None:
        return "none"
    return "better" if effect.low > 0 else "worse" if effect.high < 0 else "unclear"


def chip(effect: Effect, *, number: bool = False) -> Markup:
    """`▲ better`, or with the number and that of the tasks `▲ +0.12 (n 40)`."""
    sign, word, tone = SAID[verdict(effect)]
    shown = f"{effect.mean:+.2f} (n {effect.tasks:,})" if number and effect.mean is not None else word
    return frame.chip(f"{sign} {shown}", tone)


def line(effect: Effect) -> str:
    """`+0.120 (95 % +0.031 to +0.209, p 0.012) on 40 tasks`; never without the sample size."""
    if effect.mean is None:
        return f"nothing to compare: {words.plural(effect.unpaired, 'task')} not scored in both arms"
    parts = [span(effect), *([] if effect.p_two_sided is None else [f"p {chance(effect.p_two_sided)}"])]
    return f"{effect.mean:+.3f} ({', '.join(parts)}) on {words.plural(effect.tasks, 'task')}"


def span(effect: Effect) -> str:
    """`95 % +0.031 to +0.209`."""
    if effect.low is None or effect.high is None:
        return "no interval"
    return f"95 % {effect.low:+.3f} to {effect.high:+.3f}"


def chance(p: float | None) -> str:
    return "none" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def counts(effect: Effect) -> str:
    """`18 better, 12 alike, 10 worse`."""
    return f"{effect.wins:,} better, {effect.ties:,} alike, {effect.losses:,} worse"


def reach(effects: Sequence[Effect]) -> float:
    """How far an axis goes that shows all of these."""
    ends = [abs(v) for e in effects for v in (e.mean, e.low, e.high) if v is not None]
    return max([LEAST_REACH, *ends]) * 1.05


def strip(effect: Effect, most: float) -> Markup:
    """The interval as a bar across 0, with a mark at the mean: ● better, ◆ worse, ○ not clear."""
    if effect.mean is None:
        return markup('<span class="w-iv none">nothing to compare</span>')
    low, high = (effect.mean if v is None else v for v in (effect.low, effect.high))
    return markup(
        '<span class="w-iv {look}" role="img" aria-label="{said}"><i style="left:{left}%;width:{width}%"></i>'
        '<b style="left:{at}%"></b></span>',
        look=verdict(effect),
        said=line(effect),
        left=f"{_at(low, most):.1f}",
        width=f"{max(0.6, _at(high, most) - _at(low, most)):.1f}",
        at=f"{_at(effect.mean, most):.1f}",
    )


def _at(value: float, most: float) -> float:
    return min(100.0, max(0.0, 50 + 50 * value / most))


# --- what was measured of one thing ---


def of(ws: Workspace, subject: str) -> list[Measured]:
    """All that was measured of a lesson, a proposal or a version, the newest first."""
    return ws.measuring.of(subject)


def shown(found: Sequence[Measured], key: str) -> None:
    """Each measurement with its interval, its sample size and a way to its evaluation.

    Args:
        found: the newest first.
        key: id of what they are shown beside.
    """
    _cards(found[:SHOWN], key)
    if earlier := found[SHOWN:]:
        said = words.plural(len(earlier), "earlier measurement")
        with st.expander(safe.label(said), icon=":material/history:"):
            _cards(earlier, key)


def _cards(found: Sequence[Measured], key: str) -> None:
    most = reach([one.effect for one in found])
    for one in found:
        frame.way(
            f"measured_{key}_{one.evaluation_id}_{one.subject}",
            _card(one, most, key),
            f"Open {one.evaluation_id}",
            "pages/prove/evaluation.py",
            look="w-card",
            id=one.evaluation_id,
        )


def _card(one: Measured, most: float, beside: str) -> Markup:
    notes = [] if one.subject == beside else [f"Of {one.subject}, from which it was published."]
    if one.selected:
        notes.append("These tasks selected it, so the number is rather too good.")
    if one.fresh:
        notes.append("On fresh tasks that selected nothing.")
    if one.tried > 1:
        p = chance(one.p_adjusted)
        notes.append(f"{one.tried} were tried together: p that it is better, corrected, {p}.")
    return markup(
        '<div class="w-measured"><div class="top"><span class="id">{id}</span>{chip}<span class="end">{split}</span>'
        "</div>{strip}<div>{line}</div><div class='w-note'>{counts}; {samples} rollouts of each, on version {version},"
        " {model}. {notes}</div></div>",
        id=one.evaluation_id,
        chip=chip(one.effect),
        split=one.split,
        strip=strip(one.effect, most),
        line=line(one.effect),
        counts=counts(one.effect),
        samples=one.samples,
        version=one.version,
        model=one.model,
        notes=" ".join(notes),
    )


def under_way(ws: Workspace, subject: str) -> bool:
    """Draw the newest evaluations that measure a lesson or a proposal now; gives whether there are any."""
    found, _ = ws.store.evaluations.page(EvaluationFilter(state="active", subject=subject), limit=3)
    for row in found:
        content = markup(
            '<div class="w-measured"><div class="top"><span class="id">{id}</span>{chip}<span class="end">'
            "{done} of {all} groups</span></div></div>",
            id=row.id,
            chip=frame.chip("measuring", "accent"),
            done=f"{row.groups - row.waiting:,}",
            all=f"{row.groups:,}",
        )
        frame.way(
            f"measuring_{subject}_{row.id}",
            content,
            f"Open {row.id}",
            "pages/prove/evaluation.py",
            look="w-card",
            id=row.id,
        )
    return bool(found)


def effects(rows: Sequence[tuple[str, Effect]]) -> Markup:
    """Named effects under each other on one axis: a table that a phone can show."""
    most = reach([effect for _, effect in rows])
    return markup(
        '<div class="w-effects">{rows}</div>',
        rows=joined(
            markup(
                '<div class="w-effect"><span class="name">{name}</span>{strip}{chip}<span class="num">{line}</span>'
                "</div>",
                name=name,
                strip=strip(effect, most),
                chip=chip(effect),
                line=line(effect),
            )
            for name, effect in rows
        ),
    )


def say(name: str, baseline: str, effect: Effect) -> str:
    """A comparison in one plain sentence."""
    match verdict(effect):
        case "better":
            return f"{name} is better than {baseline}: {line(effect)}."
        case "worse":
            return f"{name} is worse than {baseline}: {line(effect)}."
        case "unclear":
            return f"{name} and {baseline} cannot be told apart: {line(effect)}."
        case _:
            return f"{name} against {baseline}: {line(effect)}."


def note(text: str) -> None:
    """Something to look at more closely, beside the numbers."""
    safe.html('<div class="w-warn">{text}</div>', text=text)
