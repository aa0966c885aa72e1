"""Audits and compression from a page: first what they would propose, then the proposals."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from core.errors import WinnowError
from core.experience import Delete
from core.workspace import Workspace
from core.workspace.auditing import Audited
from core.workspace.reviewing import Reviewing
from core.workspace.shelving import AUDITS, STRATEGIES, Audit, Rules, Suggestion
from pages.parts import diffs, frame, safe, session, words
from pages.parts.safe import markup

FOUND = "w_audited"
SHOWN = 20
TELLS: dict[Audit, str] = {
    "unused": "Unused: no use in the last 20 epochs",
    "confidence": "Low confidence: 0.10 or less after 5 uses",
    "redundant": "Redundant: two lessons of a domain that say the same",
    "capacity": "Too many: bring the library down to a size",
}
STRATEGY = {
    "hybrid": "hybrid: confidence, age and distance (recommended)",
    "importance": "importance: the least confident go",
    "diversity": "diversity: the most confident of each cluster stays",
    "temporal": "temporal: the oldest go",
}


def panel(ws: Workspace) -> None:
    """Choose what to look for, see what it would propose, send it to review."""
    with st.container(border=True, key="tidy_panel"):
        frame.section("Tidy up", "finds what the library can do without; you decide on each in the review")
        left, right = st.columns(2, gap="large")
        with left:
            audits = [a for a in AUDITS if st.checkbox(safe.label(TELLS[a]), True, key=f"tidy_{a}")]
        with right:
            strategy = st.selectbox(
                "Which go, where there are too many",
                sorted(STRATEGIES, key=list(STRATEGY).index),
                key="tidy_strategy",
                format_func=STRATEGY.__getitem__,
            )
            to = st.number_input(
                "Keep how many (0: what the library may hold)", 0, 1_000_000, 0, key="tidy_to", step=10
            )
        rules = Rules(audits=tuple(audits), strategy=strategy, to=to or None)
        why = session.refusal("reviewer")
        st.button(
            "Look first",
            key="tidy_look",
            icon=":material/search:",
            on_click=_look,
            args=(ws, rules),
            disabled=not audits or bool(why),
            help=frame.refused(why),
        )
        found = session.get(FOUND)
        if isinstance(found, tuple) and found[0] == (str(ws.folder), rules):
            _found(ws, rules, found[1])


def _look(ws: Workspace, rules: Rules) -> None:
    try:
        found = ws.auditing.audit(rules, session.me(), dry_run=True)
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    session.put(FOUND, ((str(ws.folder), rules), found))


def _send(ws: Workspace, rules: Rules, seen: Audited) -> None:
    if ws.store.versions.head() != seen.version:
        session.flash("The library moved on since you looked; nothing was proposed. Look again.", "bad")
        session.forget(FOUND)
        return
    try:
        made = ws.auditing.audit(rules, session.me())
    except WinnowError as e:
        session.flash(str(e), "bad")
        return
    session.forget(FOUND)
    session.flash(f"{words.plural(len(made.proposal_ids), 'proposal')} wait for review.")


def _found(ws: Workspace, rules: Rules, found: Audited) -> None:
    many = len(found.suggestions)
    waits = (
        f" {words.plural(found.waiting, 'lesson')} are in earlier proposals that wait."
        if found.waiting
        else ""
    )
    if not many:
        frame.note(
            f"Nothing to propose: {found.lessons:,} lessons looked at in version {found.version}.{waits}"
        )
        return
    kinds = Counter(s.operation.op for s in found.suggestions)
    frame.section(
        f"Would propose {words.plural(kinds['delete'], 'delete')} and {words.plural(kinds['merge'], 'merge')}",
        f"version {found.version}, {found.lessons:,} lessons.{waits}",
    )
    shown = found.suggestions[:SHOWN]
    ids = {i for s in shown for i in _targets(s)}
    texts = {i: e.text for i, e in Reviewing(ws.store).queue.experiences(ids).items()}
    for suggestion in shown:
        _suggestion(suggestion, texts)
    if many > SHOWN:
        frame.note(f"and {many - SHOWN:,} more like these")
    st.button(
        f"Send {many:d} to review",
        key="tidy_send",
        type="primary",
        icon=":material/send:",
        on_click=_send,
        args=(ws, rules, found),
    )


def _targets(suggestion: Suggestion) -> tuple[str, ...]:
    op = suggestion.operation
    return (op.experience_id,) if isinstance(op, Delete) else op.experience_ids


def _suggestion(suggestion: Suggestion, texts: dict[str, str]) -> None:
    op = suggestion.operation
    lines = [
        markup(
            '<div class="w-source"><span class="id">{of}</span>'
            '<div class="w-exact {look}" dir="auto">{text}</div></div>',
            of=of,
            look="gone" if isinstance(op, Delete) else "",
            text=texts.get(of, "")
            if isinstance(op, Delete)
            else diffs.lost_words(texts.get(of, ""), op.text),
        )
        for of in _targets(suggestion)
    ]
    safe.html(
        '<div class="w-suggestion"><div class="w-chips">{chip}<span class="w-note">{why}</span></div>{lines}</div>',
        chip=frame.chip(op.op, "bad" if isinstance(op, Delete) else "accent"),
        why=suggestion.sentence,
        lines=safe.joined(lines),
    )
