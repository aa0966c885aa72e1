"""A cheap look, every few seconds, at what others do meanwhile; and the heartbeat of one's own claim."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from core.errors import WinnowError
from core.experience import Proposal
from core.workspace import Workspace
from core.workspace.reviewing import Reviewing
from pages.parts import deciding, frame, queue, session

EVERY_S = 3
RENEW_MINUTES = 3.0
"""A claim that lasts shorter than this is renewed."""


@st.fragment(run_every=EVERY_S)
def watch(ws: Workspace, item: Proposal | None, stamp: str) -> None:
    """Draw the page anew when something was decided, published or claimed since it was drawn.

    While somebody writes, nothing is drawn anew: a line says what happened.

    Args:
        ws: the workspace.
        item: the proposal that is looked at, as it was drawn.
        stamp: of the desk, as it was drawn.
    """
    writing = item is not None and bool(deciding.mode(item))
    if item is not None:
        renew(ws, item)
    if Reviewing(ws.store).queue.stamp() == stamp:
        return
    if not writing or item is None:
        session.redraw()
    now = ws.store.proposals.get(item.id)
    if now.revision != item.revision:
        frame.note(
            f"{now.decided_by or 'Somebody'} changed {item.id} meanwhile; your text is kept as a draft."
        )


def renew(ws: Workspace, item: Proposal) -> None:
    """Hold what is looked at for longer, where it is held and would soon be anybody's."""
    held = ws.review.holder(item.id)
    if held is None or held.holder != session.me():
        return
    left = datetime.fromisoformat(held.until) - datetime.fromisoformat(ws.store.events.clock())
    if left.total_seconds() < RENEW_MINUTES * 60:
        try:
            ws.review.renew(item.id, session.me(), minutes=queue.LEASE_MINUTES)
        except WinnowError:
            return  # it was decided or taken over: the next look shows it
