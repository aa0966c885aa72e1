"""Where am I in the loop, and what comes next?"""

import streamlit as st

from core.workspace import Overview
from pages.parts import events, frame, jobs, safe, session, tally
from pages.parts.safe import Markup, joined, markup

ws = session.workspace()
now = ws.overview()


def step(name: str, value: object, under: str, look: str) -> Markup:
    return markup(
        '<div class="{look}"><h4>{name}</h4><b>{value}</b><span>{under}</span></div>',
        look=look,
        name=name,
        value=value,
        under=under,
    )


def looks(next_step: int, *done: bool) -> list[str]:
    return ["next" if i == next_step else "" if d else "todo" for i, d in enumerate(done)]


def next_step(now: Overview) -> tuple[int, str, str, str, str]:
    """(which of the five steps, what it brings, button, page, id)."""
    run = now.newest_run
    if not now.tasks and not now.rollouts:
        return 0, "", "Import tasks", "pages/learn/import_tasks.py", ""
    if run and run.status not in ("done", "failed"):
        done = run.tally.total - run.tally.waiting
        busy = ws.learning.busy(run.id)
        state = "is being worked on" if busy else "was interrupted and can go on where it stopped"
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
look = looks(
    which, bool(tasks), bool(now.rollouts), bool(sum(now.proposals.values())), bool(now.experiences), False
)
packs = len([e for e in ws.store.events.newest(200) if e.kind == "pack.exported"])
safe.html(
    '<div class="w-loop">{steps}</div>',
    steps=joined(
        (
            step("Tasks", tasks, f"in {len(now.tasks)} domains" if now.tasks else "none yet", look[0]),
            step("Rollouts", now.rollouts, f"{now.groups.informative} groups teach", look[1]),
            step("Proposals", now.waiting_review, f"waiting, {now.staged} staged", look[2]),
            step("Library", now.experiences, f"lessons in version {now.version}", look[3]),
            step("Packs", packs, "shipped", look[4]),
        )
    ),
)

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
