"""One lesson's life: its exact text, its history, and where it came from."""

import streamlit as st

from pages.parts import frame, proposals, safe, session, words
from pages.parts.guard import guard

ws = session.workspace()
frame.back("Library", "pages/review/library.py")
if not (experience_id := session.asked()):
    frame.page("Lesson", "One lesson, with its history and its evidence.")
    frame.empty(
        "No lesson chosen", "Choose one from the library.", "Go to the library", "pages/review/library.py"
    )
    st.stop()
with guard(stop=True):
    lesson, made_by = ws.review.origin(experience_id)
    history = ws.store.versions.history(experience_id)

fate = {
    "live": "",
    "deleted": "It was taken out of the library.",
    "merged": f"It was merged into {lesson.merged_into}.",
}
frame.page(
    lesson.id,
    fate[lesson.status] or f"A {words.KIND[lesson.kind]} for {lesson.domain} tasks.",
    crumb="Lesson",
)
safe.exact(lesson.text, key="lesson", look="lesson" if lesson.status == "live" else "lesson gone")
proposals.word_count(lesson.text)

left, right = st.columns([3, 2], gap="large")
with left:
    frame.section("Where it came from")
    if not made_by:
        frame.note("No proposal is recorded for it.")
    for proposal in made_by:
        if frame.card(proposal.id, proposals.summary(proposal), f"Open proposal {proposal.id}"):
            st.switch_page("pages/review/review.py", query_params={"id": proposal.id})
    frame.section("History", "the newest first; nothing is erased")
    for start, end, state in reversed(history):
        safe.html(
            '<div class="w-chips"><span class="w-chip quiet">version {start}{to}</span>{status}</div>',
            start=start,
            to=f" to {end - 1}" if end is not None else " until now",
            status=frame.chip(state.status, "good" if state.status == "live" else "bad"),
        )
        safe.exact(state.text, key=f"history_{start}", look="" if state.status == "live" else "gone")
with right:
    if made_by:
        frame.section("Evidence")
        proposals.evidence(made_by[0])
        proposals.examples(made_by[0])
    frame.section("Use")
    frame.facts(
        [
            ("Confidence", f"{lesson.confidence:.2f}"),
            ("Uses", lesson.uses),
            ("Wins", lesson.wins),
            ("Learned on", lesson.learned_on or "not recorded"),
        ]
    )
