"""Two runs beside each other, paired by task."""

import streamlit as st

from core.workspace.versus import Versus
from pages.parts import address, charts_versus, figures, frame, paging, safe, session, versus_view, words
from pages.parts.guard import guard
from pages.parts.once import once

LOOKED_AT = 20
"""Newest runs that are looked at for a pair that shares tasks."""
PAIR = "w_compare_pair"
SHOWS = {"": "all shared tasks", "wins": "B better", "losses": "B worse", "ties": "ties"}

ws = session.workspace()
frame.page(
    "Compare runs",
    "Two runs, paired by task. It describes what was seen; a proof takes tasks that neither run learned from.",
)
runs = ws.store.figures.runs()
if len(runs) < 2:
    frame.empty(
        "Two runs are needed",
        "Here two runs stand beside each other, task by task: what one version of the library, one model or one "
        "setting does better than another.",
        "Go to runs",
        "pages/learn/runs.py",
    )
    st.stop()


def pair() -> tuple[str, str]:
    """The newest run that shares a task with an earlier one, after that one; empty where none does."""
    found = ((ws.store.runs.before(r.id), r.id) for r in runs[:LOOKED_AT])
    return next((each for each in found if each[0]), ("", ""))


def choice() -> tuple[str, str]:
    """The two runs; by default the newest two that share tasks, else the newest two."""
    ids = [r.id for r in runs]
    one, other = (ids.index(i) if i in ids else place for i, place in zip(shared, (1, 0), strict=True))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        a = st.selectbox(
            "A, the baseline",
            ids,
            index=address.place(ids, "compare_a", one),
            key="compare_a",
            bind="query-params",
            width=200,
        )
        b = st.selectbox(
            "B, compared with it",
            ids,
            index=address.place(ids, "compare_b", other),
            key="compare_b",
            bind="query-params",
            width=200,
        )
        st.button("Swap", key="compare_swap", icon=":material/swap_horiz:", on_click=swap)
    return a, b


def swap() -> None:
    state = st.session_state
    state["compare_a"], state["compare_b"] = state["compare_b"], state["compare_a"]


def tasks(found: Versus) -> None:
    """Every shared task, the largest differences first, with both of its groups."""
    which = st.segmented_control(
        "Tasks",
        list(SHOWS),
        default="",
        required=True,
        key="compare_show",
        format_func=SHOWS.__getitem__,
        bind="query-params",
        label_visibility="collapsed",
    )
    shown = [p for p in found.pairs if which in ("", versus_view.kind(p))]
    if not shown:
        frame.note("No shared task is one of these.")
    first = paging.offset("compare_page", len(shown))
    for pair in shown[first : first + paging.PAGE]:
        safe.html('<div class="w-card">{content}</div>', content=versus_view.pair_card(pair))
        with st.container(horizontal=True, gap="small"):
            for side, group in (("A", pair.group_a), ("B", pair.group_b)):
                if st.button(safe.label(f"{side}: {group}"), key=f"compare_{side}_{group}", type="tertiary"):
                    st.switch_page(
                        "pages/learn/group.py",
                        query_params={"id": group, **address.inside({"compare_a": a, "compare_b": b})},
                    )


shared = once(PAIR, "pair", (str(ws.folder), ws.store.figures.stamp()), pair)
a, b = choice()
about = {r.id: figures.run_label(r) for r in runs}
frame.note(f"A is {about[a]}; B is {about[b]}.")
if a == b:
    versus_view.same("The same run twice", "Choose another run on one side.")
    st.stop()
with guard(stop=True):
    found = figures.compared(ws, a, b)
alone_a, alone_b = found.a.tasks - found.shared, found.b.tasks - found.shared
frame.note(
    f"{words.plural(found.shared, 'task')} with scored rollouts in both; {alone_a:,} only in A, {alone_b:,} only in B "
    "(or not scored in the other). Only shared tasks are compared."
)
if found.overall is None:
    versus_view.same(
        "No task in common",
        "These runs have no scored task in common, so there is nothing to pair. Their sums stand below. "
        + (
            f"{shared[0]} and {shared[1]} share tasks."
            if shared[0]
            else "Nor do any other two of the newest runs: run the same tasks again, under another version or setting."
        ),
    )
elif found.same:
    versus_view.same(
        "Nothing differs", f"All {found.shared:,} shared tasks have the same mean reward in both runs."
    )
else:
    versus_view.verdict(found.overall)
frame.section("What they took and gave")
versus_view.sums(found)
if found.overall is not None:
    if not found.same:
        frame.section("By domain", "mean difference over tasks, with its 95 % bootstrap interval")
        charts_versus.differences((found.overall, *found.domains), "compare_domains")
        if len(found.domains) >= charts_versus.DOMAINS:
            frame.note(f"The first {charts_versus.DOMAINS - 1} of {len(found.domains)} domains.")
        frame.note(
            "Descriptive: the tasks may have taught the lessons that are compared here, and an interval of one domain "
            "among many leaves out 0 now and then by chance. The proof is a measurement on held-out tasks."
        )
    frame.section("Task by task", "the largest differences first")
    tasks(found)
