"""Where am I in the loop, and what comes next?"""

import streamlit as st

from core.workspace import Overview
from pages.parts import events, frame, jobs, safe, session, tally, words
from pages.parts.safe import markup

ws = session.workspace()
now = ws.overview()


def step(
    number: int, name: str, value: object, under: str, target: str, *, done: bool, current: bool
) -> None:
    content = markup(
        '<div class="w-step {look}"><span class="n">{number}</span><h4>{name}</h4><b>{value}</b>'
        '<span class="under">{under}</span></div>',
        look="" if done or current else "todo",
        number=number,
        name=name,
        value=value,
        under=under,
    )
    if frame.card(f"step_{number}", content, f"Go to {name.lower()}", current=current):
        st.switch_page(target)


def next_step(now: Overview) -> tuple[int, str, str, str, str]:
    """(which of the five steps, what it brings, button, page, id)."""
    run = now.newest_run
    if not now.tasks and not now.rollouts:
        return 0, "", "Import tasks", "pages/learn/import_tasks.py", ""
    if run and run.status not in ("done", "failed", "cancelled", "review"):
        done = run.tally.total - run.tally.waiting
        job = ws.jobs.of_run(run.id)
        state = "is being worked on" if jobs.active(job) else "stopped and can go on where it is"
        return (
            1,
            f"{run.id} {state}: {done} of {run.tally.total} groups are finished.",
            f"Open {run.id}",
            ("pages/learn/run.py"),
            run.id,
        )
    if now.staged and not now.waiting_review:
        return (
            3,
            f"{now.staged} approved and not yet part of the library.",
            (f"Publish version {now.version + 1}"),
            "pages/review/publish.py",
            "",
        )
    if now.waiting_review:
        return (
            2,
            "Each one is shown with its exact text and what was counted for it.",
            (f"Review {now.waiting_review} proposal{'s' * (now.waiting_review != 1)}"),
            "pages/review/review.py",
            "",
        )
    if run and run.status == "review":
        return (
            1,
            f"What {run.id} proposed is decided on and published: its next batch can start.",
            f"Go on with {run.id}",
            "pages/learn/run.py",
            run.id,
        )
    if not now.rollouts:
        return (
            1,
            "Sample several rollouts of each task, so that good and bad ones can be told apart.",
            ("Start a run"),
            "pages/learn/new_run.py",
            "",
        )
    if now.experiences:
        return 4, "The library is ready to go into your agents.", "Export a pack", "pages/ship/packs.py", ""
    return (
        1,
        "Nothing waits for review. Another run, with other tasks or settings, may teach more.",
        ("Start a run"),
        "pages/learn/new_run.py",
        "",
    )


frame.page("Winnow", "Lessons from your rollouts: counted, reviewed by you, and ready to ship.")

which, why, button, target, of = next_step(now)
tasks = sum(n for by in now.tasks.values() for n in by.values())
packs = len([e for e in ws.store.events.newest(200) if e.kind == "pack.exported"])
steps = (
    (
        "Tasks",
        tasks,
        f"in {words.plural(len(now.tasks), 'domain')}" if tasks else "none yet",
        "pages/learn/tasks.py",
    ),
    (
        "Rollouts",
        now.rollouts,
        f"{now.groups.informative:,} informative groups",
        "pages/learn/groups.py",
    ),
    ("Proposals", now.waiting_review, f"waiting, {now.staged} staged", "pages/review/review.py"),
    ("Library", now.experiences, f"lessons in version {now.version}", "pages/review/library.py"),
    ("Packs", packs, "shipped", "pages/ship/packs.py"),
)
reached = (tasks, now.rollouts, sum(now.proposals.values()), now.experiences, packs)
with st.grid(5, min_column_width=150):
    for i, (name, value, under, page) in enumerate(steps):
        step(i + 1, name, value, under, page, done=bool(reached[i]), current=i == which)

if not now.tasks and not now.rollouts:
    with st.container(key="w_empty", horizontal_alignment="center"):
        safe.html(
            '<div class="w-empty"><div class="w-grain"></div><h3>Nothing here yet</h3><p>{text}</p></div>',
            text="Winnow runs a frozen model several times on each of your tasks, counts what the better attempts "
            "did differently, and proposes short lessons. You decide which ones stay.",
        )
        with st.container(horizontal=True, horizontal_alignment="center"):
            if st.button("Load the sample project", key="load_sample", type="primary"):
                jobs.load_sample(ws)
            if st.button("Import your tasks", key="import_own"):
                st.switch_page("pages/learn/import_tasks.py")
    st.stop()

frame.section("Next", why)
if st.button(safe.label(button), key="next_step", type="primary", icon=":material/arrow_forward:"):
    st.switch_page(target, query_params={"id": of} if of else None)

left, right = st.columns([3, 2], gap="large")
with left:
    frame.section("What the groups said")
    tally.bar(now.groups)
with right:
    frame.section("Lately")
    events.lines([e for e in ws.store.events.newest(60) if e.kind != "proposal.made"][:7])
