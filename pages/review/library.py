"""The library: every live lesson, exactly as it is injected and shipped."""

import streamlit as st

from pages.parts import frame, paging, safe, session, words
from pages.parts.guard import guard
from pages.parts.safe import markup

ws = session.workspace()
head = ws.store.versions.head()
asked = session.asked("version")
frame.page(
    "Library", "Lessons that a person approved. Every one leads back to the rollouts that it came from."
)
with guard(stop=True):
    library = ws.store.versions.library(int(asked) if asked.isdecimal() else None)
lessons = list(library)
if not lessons:
    frame.empty(
        "No lessons yet",
        "Approve proposals in the review and publish them: they become version 1 of the library."
        if library.version == head == 0
        else f"Version {library.version} has no live lessons.",
        "Go to the review",
        "pages/review/review.py",
    )
    st.stop()

if library.version != head:
    safe.html(
        '<div class="w-warn">{text}</div>', text=f"This is version {library.version}; the newest is {head}."
    )
domains = sorted({e.domain for e in lessons})
with st.container(horizontal=True, vertical_alignment="bottom"):
    search = st.text_input(
        "Search",
        key="library_search",
        bind="query-params",
        placeholder="Words of a lesson, or an id",
        width=340,
    )
    domain = st.selectbox(
        "Domain", ["", *domains], key="library_domain", format_func=lambda d: d or "All", width=200
    )
needle = (search or "").casefold()
found = [
    e
    for e in lessons
    if (not domain or e.domain == domain)
    and (not needle or needle in e.text.casefold() or needle == e.id.casefold())
]
frame.note(f"{words.plural(len(found), 'lesson')} in version {library.version}")
first = paging.offset("library_page", len(found))
for lesson in found[first : first + paging.PAGE]:
    content = markup(
        '<div class="top"><span class="id">{id}</span><span class="w-chip quiet">{kind}</span>'
        '<span class="w-chip quiet">'
        '{domain}</span><span class="end">confidence {confidence}</span></div><div class="w-exact bare" dir="auto" '
        'style="font:400 1.08rem/1.45 var(--w-serif)">{text}</div><div class="foot">{foot}</div>',
        id=lesson.id,
        kind=words.KIND[lesson.kind],
        domain=lesson.domain,
        confidence=f"{lesson.confidence:.2f}",
        text=lesson.text,
        foot=f"{words.plural(lesson.uses, 'use')}, {words.plural(lesson.wins, 'win')}"
        + (f" · learned on {lesson.learned_on}" if lesson.learned_on else ""),
    )
    if frame.card(lesson.id, content, f"Open lesson {lesson.id}"):
        st.switch_page("pages/review/experience.py", query_params={"id": lesson.id})
