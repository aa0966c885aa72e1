"""One comparison of an evaluation more closely: by domain, by seed, by right answer, and look by look."""

from __future__ import annotations

import streamlit as st

from core.proof import Comparison, Report, beside
from pages.parts import address, frame, measured, number_tables, safe, words


def chosen(report: Report) -> Comparison:
    """The comparison that is looked at more closely; the address holds it."""
    names = [c.arm for c in report.comparisons]
    if len(names) == 1:
        return report.comparisons[0]
    name = st.selectbox(
        "Look closely at",
        names,
        index=address.place(names, "evaluation_arm"),
        key="evaluation_arm",
        bind="query-params",
        width=320,
    )
    return report.comparisons[names.index(name)]


def draw(report: Report, one: Comparison) -> None:
    """One comparison by domain, by seed, by right answer, and look by look."""
    if one.content is not None:
        frame.note(f"The content part of the scores alone: {measured.line(one.content)}.")
    if len(one.by_domain) > 1:
        frame.section("By domain")
        safe.draw(measured.effects([*one.by_domain.items()]))
        frame.note("An interval of one domain among many leaves out 0 now and then by chance.")
    if len(one.by_seed) > 1:
        frame.section("By seed")
        safe.draw(measured.effects([(f"seed {seed}", effect) for seed, effect in one.by_seed.items()]))
    if one.labels:
        with st.expander(safe.label(f"By right answer ({len(one.labels)})"), icon=":material/rule:"):
            _labels(one)
    if one.looks:
        with st.expander(
            safe.label(f"Looks before the end ({len(one.looks)})"), icon=":material/visibility:"
        ):
            _looks(one, "below" if report.config.stop_when == "decided" else "above")


def _labels(one: Comparison) -> None:
    head = (("Domain", ""), ("Right answer", ""), ("Tasks", "num"), (one.baseline, "num"), (one.arm, "num"))
    rows = [
        number_tables.row(
            ("", r.domain),
            ("", safe.short(r.label, 80)),
            ("num", f"{r.tasks:,}"),
            ("num", words.number(r.baseline) + beside(r.baseline_tasks, r.tasks)),
            ("num", words.number(r.arm) + beside(r.arm_tasks, r.tasks)),
        )
        for r in one.labels
    ]
    number_tables.draw(head, rows)


def _looks(one: Comparison, side: str) -> None:
    head = (("After tasks", "num"), ("p", "num"), (f"Stops {side}", "num"), ("", ""))
    rows = [
        number_tables.row(
            ("num", f"{look.tasks:,}"),
            ("num", measured.chance(look.p)),
            ("num", f"{look.threshold:.4f}"),
            ("", "stopped" if look.stopped else ""),
        )
        for look in one.looks
    ]
    number_tables.draw(head, rows)
