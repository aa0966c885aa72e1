"""The log: who did what, when. It is only ever added to."""

import json

import streamlit as st

from pages.parts import events, frame, safe, session
from pages.parts.safe import joined, markup

SHOWN = 100

ws = session.workspace()
frame.page(
    "Activity", "Everything that happened in this workspace, the newest first. Lines are never changed."
)
subject = st.text_input(
    "About", key="activity_subject", bind="query-params", placeholder="An id, such as P-0003 or R1", width=320
)
before = session.asked("before")
found = ws.store.events.newest(
    SHOWN, subject=(subject or "").strip() or None, before=int(before) if before.isdecimal() else None
)
if not found:
    frame.empty(
        "Nothing happened yet" if not subject else "Nothing about this id",
        "Imports, runs, decisions, versions and exports leave a line here.",
        "Go home",
        "pages/learn/home.py",
    )
    st.stop()

rows = joined(
    markup(
        '<tr><td class="num">{when}</td><td>{who}</td><td>{verb} <b>{subject}</b></td>'
        '<td class="w-note">{data}</td></tr>',
        when=events.when(e.at),
        who=e.actor,
        verb=events.WORDS.get(e.kind, e.kind),
        subject=safe.short(e.subject, 120),
        data=safe.short(
            ", ".join(f"{k} {json.dumps(v, ensure_ascii=False)}" for k, v in e.data.items() if v is not None),
            200,
        ),
    )
    for e in found
)
safe.html(
    '<div class="w-scroll"><table class="w-table"><tr><th class="num">When</th><th>Who</th>'
    "<th>What</th><th>Details</th></tr>"
    "{rows}</table></div>",
    rows=rows,
)
if len(found) == SHOWN and st.button("Older", key="activity_older", icon=":material/expand_more:"):
    st.query_params["before"] = str(found[-1].id)
    st.rerun()
