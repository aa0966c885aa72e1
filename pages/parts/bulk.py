"""One decision on all that match the filters: looked at first, then made on what was looked at and on nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import streamlit as st

from core.workspace import Workspace
from core.workspace.reviewing import Decision, Order, Reviewing, Seen, Sieve, Weighed
from pages.parts import deciding, frame, proposals, queue, safe, session, words
from pages.parts.queue import Queue
from pages.parts.safe import joined, markup

OPEN = "w_bulk"
REASON = "bulk_reason"
COUNT = "bulk_count"
MOST = 1_000
"""So many are decided on at once; what matches beyond them is left for the next time."""
SHOWN = 12
REFUSED_SHOWN = 40
DONE = {"approve": "staged", "reject": "rejected", "defer": "deferred", "undo": "back in the queue"}


@dataclass(frozen=True)
class Looked:
    """What was looked at: which proposals at which revisions, and what would come of the decision."""

    decision: Decision
    sieve: Sieve
    order: Order
    total: int
    weighed: tuple[Weighed, ...]

    @property
    def fit(self) -> list[Weighed]:
        return [w for w in self.weighed if not w.refused]

    @property
    def refused(self) -> list[Weighed]:
        return [w for w in self.weighed if w.refused]

    @property
    def grave(self) -> bool:
        """Whether the number has to be typed: it takes lessons away, or turns everything down."""
        takes_away = any(w.proposal.operation.op in ("delete", "merge") for w in self.fit)
        return self.decision == "reject" or (self.decision == "approve" and takes_away)


def decisions(name: str) -> tuple[Decision, ...]:
    """What can be decided on a whole queue."""
    if name == queue.WAITING:
        return ("approve", "reject", "defer")
    return ("undo",) if name in ("Staged", "Rejected") else ()


def looked() -> Looked | None:
    found = session.get(OPEN)
    return found if isinstance(found, Looked) else None


def is_open(chosen: Queue) -> bool:
    """Whether the panel is open; other filters close it, as it was about something else."""
    found = looked()
    return found is not None and found.sieve == chosen.sieve


def opener(ws: Workspace, reading: Reviewing, chosen: Queue, total: int) -> None:
    possible = decisions(chosen.name)
    if total > 1 and possible and not is_open(chosen):
        st.button(
            f"Decide on all {total:d}",
            key="bulk_open",
            type="tertiary",
            icon=":material/done_all:",
            on_click=look,
            args=(ws, reading, chosen, possible[0]),
        )


def look(ws: Workspace, reading: Reviewing, chosen: Queue, decision: Decision) -> None:
    """See what would come of a decision on all that match; nothing is changed."""
    ids = reading.queue.ids(chosen.sieve, order=chosen.order, limit=MOST)
    _, total = reading.queue.page(chosen.sieve, limit=0)

    def command() -> None:
        weighed = ws.review.weigh(decision, [Seen(*one) for one in ids], session.me())
        session.put(OPEN, Looked(decision, chosen.sieve, chosen.order, total, tuple(weighed)))

    session.forget(COUNT)
    deciding.close_panel()
    session.attempt(command)


def close() -> None:
    session.forget(OPEN, COUNT, REASON)


def panel(ws: Workspace, reading: Reviewing, chosen: Queue) -> None:
    """What would come of the decision: how many of which kind, the first of them, and what is left out and why."""
    found = looked()
    if found is None:
        return
    frame.section("Decide on all that match", "nothing happens before you say so")
    with st.container(horizontal=True, key="bulk_choice"):
        for decision in decisions(chosen.name):
            st.button(
                safe.label(decision.capitalize()),
                key=f"bulk_{decision}",
                type="primary" if decision == found.decision else "secondary",
                on_click=look,
                args=(ws, reading, chosen, decision),
            )
    ops = Counter(w.proposal.operation.op for w in found.fit)
    chips = joined(
        frame.chip(f"{n:,} {queue.OPERATIONS[op]}", "bad" if op in ("delete", "merge") else "quiet")
        for op, n in ops.most_common()
    )
    more = f" There are {found.total - MOST:,} more: decide on them next." if found.total > MOST else ""
    safe.html(
        '<div class="w-decided"><b>{n} would be {done}</b>, {left} left out.{more} {chips}</div>',
        n=f"{len(found.fit):,}",
        done=DONE[found.decision],
        left=f"{len(found.refused):,}",
        more=more,
        chips=chips,
    )
    if found.decision == "reject":
        st.selectbox(
            "Reason",
            ws.preferences.reject_reasons,
            key=REASON,
            index=None,
            accept_new_options=True,
            placeholder="Choose a reason, or write one; it is kept with each",
        )
    if found.fit and found.grave:
        st.text_input(
            f"Type {len(found.fit):d} to say that you mean all of them",
            key=COUNT,
            width=340,
            max_chars=9,
        )
    _left_out(found.refused)
    for weighed in found.fit[:SHOWN]:
        safe.html('<div class="w-card">{card}</div>', card=proposals.summary(weighed.proposal))
    if len(found.fit) > SHOWN:
        frame.note(f"and {len(found.fit) - SHOWN:,} more like these.")


def _left_out(refused: list[Weighed]) -> None:
    if not refused:
        return
    with st.expander(f"{len(refused):d} left out, and why", expanded=len(refused) <= 6):
        rows = joined(
            markup(
                '<tr><td class="w-whole"><b>{id}</b></td><td>{why}</td></tr>', id=w.proposal.id, why=w.refused
            )
            for w in refused[:REFUSED_SHOWN]
        )
        safe.html('<table class="w-table">{rows}</table>', rows=rows)
        if len(refused) > REFUSED_SHOWN:
            frame.note(f"and {len(refused) - REFUSED_SHOWN:,} more.")


def bar(ws: Workspace) -> None:
    """The buttons of the panel."""
    found = looked()
    if found is None:
        return
    with st.container(horizontal=True, key="review_actions"):
        st.button(
            safe.label(f"{found.decision.capitalize()} {len(found.fit):,}"),
            key="bulk_now",
            type="primary",
            disabled=not found.fit,
            on_click=decide,
            args=(ws,),
        )
        st.button("Close", key="panel_cancel", shortcut="Escape", on_click=close)


def decide(ws: Workspace) -> None:
    """Decide on what was looked at: what somebody changed since is left out and named."""
    found = looked()
    if found is None:
        return  # pressed twice
    if found.grave and str(session.get(COUNT, "") or "").strip().replace(",", "") != str(len(found.fit)):
        session.flash(f"Type {len(found.fit)} first: that is how many are meant.", "bad")
        return
    again = ws.review.weigh(found.decision, [w.seen for w in found.fit], session.me())
    fit = [w.seen for w in again if not w.refused]
    left = [w for w in again if w.refused]
    if not fit:
        session.flash("Nothing is left to decide on: all of them were changed since. Look again.", "bad")
        close()
        return
    reason = str(session.get(REASON) or "")
    said = f"{words.plural(len(fit), 'proposal')} {DONE[found.decision]}."
    if left:
        named = ", ".join(w.proposal.id for w in left[:8])
        said += f" {len(left)} left out, as they were changed since you looked: {named}."
    if session.attempt(lambda: ws.review.decide_all(found.decision, fit, session.me(), reason=reason), said):
        if found.decision != "undo":
            deciding.remember_decided([one.proposal_id for one in fit])
        close()
        st.query_params.pop("id", None)
