"""The log: who did what, when and why. It is only ever added to."""

import streamlit as st

from core.rollout import Event
from core.workspace import Workspace
from pages.parts import events, frame, log_file, paging, safe, session
from pages.parts.safe import Markup, markup

PAGE = 50

ws = session.workspace()
log = ws.store.events


def filters() -> tuple[str, str, str]:
    """What is looked for: kind, person, subject."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="activity_filters"):
        kind = st.selectbox(
            "What",
            ["", *events.kinds_and_themes(log.kinds())],
            key="activity_kind",
            bind="query-params",
            format_func=lambda k: events.kind_words(k) if k else "Everything but claims",
            width=240,
        )
        people = log.actors()
        who = session.get("activity_who")
        if isinstance(who, str) and who and who not in people:
            people.append(who)
        who = st.selectbox(
            "Who",
            ["", *people],
            key="activity_who",
            bind="query-params",
            format_func=lambda n: n or "Everybody",
            accept_new_options=True,
            width=220,
        )
        subject = st.text_input(
            "About",
            key="activity_subject",
            bind="query-params",
            placeholder="An id, such as P-0003",
            width=220,
        )
    return str(kind or ""), str(who or ""), (subject or "").strip()


def row(event: Event) -> None:
    """One line; where there is a page about it, the line leads there."""
    reason = events.why(event)
    content = markup(
        '<div class="w-log"><time title="{at}">{when}</time><div>{sentence}{why}{details}</div></div>',
        at=event.at,
        when=event.at[11:16] if event.at > "1971" else "",
        sentence=events.sentence(event),
        why=markup('<div class="why">{why}</div>', why=safe.short(reason, 400)) if reason else Markup(),
        details=markup('<div class="w-note">{told}</div>', told=told)
        if (told := events.details(event))
        else Markup(),
    )
    if found := events.way(event):
        frame.way(f"log_{event.id}", content, f"Open {event.subject}", found.page, **found.query)
    else:
        safe.draw(content)


def rows(found: list[Event]) -> None:
    """The lines under their days."""
    day = ""
    with st.container(key="activity_log", gap=None):
        for event in found:
            if event.at[:10] != day:
                day = event.at[:10]
                safe.html('<h3 class="w-day">{day}</h3>', day=events.day_words(event.at))
            row(event)


def export(ws: Workspace, kind: str, but: str, who: str, subject: str) -> None:
    st.download_button(
        "Download as CSV",
        lambda: log_file.csv_of(ws, kind=kind, but=but, actor=who, subject=subject),
        "winnow-activity.csv",
        "text/csv",
        key="activity_csv",
        on_click="ignore",
        icon=":material/download:",
        type="tertiary",
        help=f"All lines that fit, at most {log_file.MOST:,d}.",
    )


frame.page(
    "Activity",
    "Everything that happened in this workspace, the newest first. Lines are never changed or taken away.",
)
kind, who, subject = filters()
but = "" if kind else "claim"  # looking at a proposal claims it: hundreds of lines would hide the decisions
total = log.page(kind=kind, but=but, actor=who, subject=subject, limit=0)[1]
if not total:
    filtered = bool(kind or who or subject)
    frame.empty(
        "Nothing fits these filters" if filtered else "Nothing happened yet",
        "Imports, runs, decisions, versions and exports leave a line here: who did it, when, and why.",
        "Show everything" if filtered else "Go home",
        "pages/admin/activity.py" if filtered else "pages/learn/home.py",
    )
    st.stop()
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    frame.note(f"{total:,} {'line' if total == 1 else 'lines'}")
    export(ws, kind, but, who, subject)
listed = st.container()
first = paging.offset("activity_page", total, PAGE)
with listed:
    rows(log.page(kind=kind, but=but, actor=who, subject=subject, limit=PAGE, offset=first)[0])
