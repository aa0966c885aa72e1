"""Groups: the rollouts of one task beside each other, and which groups teach something."""

import streamlit as st

from core.rollout import GroupRow
from core.workspace.reweighing import composition
from pages.parts import (
    address,
    charts,
    charts_rewards,
    frame,
    group_filter,
    paging,
    reasons,
    safe,
    session,
    tool_tables,
    words,
)
from pages.parts.figures import Figures
from pages.parts.group_filter import Listed
from pages.parts.guard import guard
from pages.parts.safe import Markup, markup

VIEWS = {"map": "Map", "rewards": "Rewards", "tools": "Tools", "list": "List only"}
MOST_PARTS = 12
"""Domains whose rewards are shown in parts."""

ws = session.workspace()
frame.page(
    "Groups",
    "A group is informative when its rollouts differ in reward; the others are counted with their reason.",
)
runs = ws.store.figures.runs()
if not runs:
    frame.empty(
        "No groups yet",
        "Groups come from runs: several rollouts of one task under one library version.",
        "Go to runs",
        "pages/learn/runs.py",
    )
    st.stop()


def open_group(group_id: str, listed: Listed) -> None:
    st.switch_page(
        "pages/learn/group.py",
        query_params={"id": group_id, **listed.inside, **address.inside({"group_view": view})},
    )


def the_map(found: Figures, listed: Listed, finished: int) -> None:
    """Where groups lie, and how their rewards are distributed."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        frame.section("Groups by mean and spread", "the further up, the more there is to learn; click one")
        key = f"map_{found.which.canonical()}"
        if finished > charts.DENSE:
            grid = found.grid()
            frame.note(f"{finished:,} groups: each cell is sized by how many lie there. A click lists them.")
            if (middle := charts.density(grid, key)) and (
                cell := group_filter.cell_of(grid, middle)
            ) != listed.cell:
                st.query_params[group_filter.CELL] = cell
                st.rerun()
        elif points := ws.store.figures.points(found.which, charts.DENSE):
            if chosen := charts.scatter(points, key):
                open_group(chosen, listed)
        else:
            frame.note("No group here has a reward.")
    with right:
        frame.section("Rewards")
        rewards(found, "reward_histogram", by_domain=False)


def rewards(found: Figures, key: str, *, by_domain: bool) -> None:
    spread = found.distribution()
    if spread.scored:
        charts_rewards.distribution(spread, key, by_domain=by_domain)
    total = spread.scored + spread.unscored + spread.errors
    safe.html(
        '<p class="w-sum"><b>{scored}</b> scored + <b>{unscored}</b> not to be scored + <b>{errors}</b> broke off '
        "= <b>{total}</b> rollouts. Only the scored ones are drawn: unscored is not 0.</p>",
        scored=f"{spread.scored:,}",
        unscored=f"{spread.unscored:,}",
        errors=f"{spread.errors:,}",
        total=f"{total:,}",
    )


def in_depth(found: Figures) -> None:
    """The distribution by domain, what rewards are made of, and how they went over time."""
    left, right = st.columns(2, gap="large")
    with left:
        frame.section("Rewards by domain")
        rewards(found, "reward_domains", by_domain=True)
    with right:
        frame.section("What the rewards are made of", "mean contribution of each part; they add up")
        made_of(found)
    frame.section("Over epochs and batches", "mean reward, with the standard deviation over tasks")
    if not found.which.run_id:
        frame.note("Choose one run above: batches of different runs are not steps of one story.")
    elif len(batches := found.batches()) > 1:
        charts_rewards.over_time(batches, "over_time")
    else:
        frame.note("This run has one batch so far: there is no course to draw.")


def made_of(found: Figures) -> None:
    if not found.which.run_id:
        frame.note("Choose one run above: runs may weigh the parts differently.")
        return
    config = ws.store.figures.reward_of(found.which.run_id).reward
    means = composition(found.parts(), config)
    shown = sorted(means.items(), key=lambda item: -sum(item[1].values()))
    if not shown:
        frame.note("No rollout is scored yet.")
        return
    rows = [
        (charts.wrapped(domain), parts, f"{sum(parts.values()):.2f}") for domain, parts in shown[:MOST_PARTS]
    ]
    charts_rewards.composition(rows, "reward_parts", "Mean reward of each domain in its parts")
    recorded = any(r.kind == "recorded" for r in runs if r.id == found.which.run_id)
    frame.note(f"Reward: {words.reward(config, words.EITHER if recorded else frozenset())}.")
    if len(shown) > MOST_PARTS:
        frame.note(f"The {MOST_PARTS} best of {len(shown)} domains.")


def tools(found: Figures) -> None:
    used, failures = found.tools()
    if not used:
        frame.note("No rollout here called a tool.")
        return
    frame.section(
        "Tools", "calls = worked + failed + not known; what nobody calls an error is no success yet"
    )
    tool_tables.by_tool(used)
    frame.section("What failures say", "the most frequent messages; open one at the step that says it")
    if failures:
        tool_tables.errors(failures)
    else:
        frame.note("No call failed with a message.")


def row_card(row: GroupRow) -> Markup:
    foot = (
        f"{row.scored} of {row.size} scored" if row.status != "waiting" else "waits to be sampled",
        words.plural(row.errors, "error") if row.errors else "",
        row.reason,
        f"epoch {row.epoch + 1}" if row.epoch else "",
    )
    return markup(
        '<div class="top"><span class="id">{id}</span>{chip}<span class="w-chip quiet">{domain}</span>'
        '<span class="end">mean {mean} · spread {spread}</span></div>'
        '<div class="text clamp" dir="auto">{question}</div><div class="foot">{foot}</div>',
        id=row.id,
        chip=words.group_chip(row),
        domain=row.domain,
        mean=words.number(row.mean),
        spread=words.number(row.spread),
        question=safe.short(row.question, 200),
        foot=" · ".join(part for part in foot if part),
    )


def chosen_cell(listed: Listed) -> None:
    """Say that only one cell of the map is listed, with a way out."""
    if not listed.which.mean_between or not listed.which.spread_between:
        return
    mean, spread = listed.which.mean_between, listed.which.spread_between
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.note(f"Listed: mean {mean[0]:.2f} to {mean[1]:.2f}, spread {spread[0]:.2f} to {spread[1]:.2f}.")
        if st.button("All cells", key="group_all_cells", icon=":material/close:", type="tertiary"):
            st.query_params[group_filter.CELL] = ""
            st.rerun()


with guard(stop=True):
    listed = group_filter.widgets(ws, runs)
whole = listed.which.model_copy(update={"mean_between": None, "spread_between": None})
figures = Figures(ws, whole)
tally = figures.tally()
if not tally.total:
    frame.note("No group fits these filters.")
    st.stop()
reasons.bar(tally)
view = st.segmented_control(
    "View",
    list(VIEWS),
    default=address.handed("group_view") if address.handed("group_view") in VIEWS else "map",
    required=True,
    key="group_view",
    format_func=VIEWS.__getitem__,
    bind="query-params",
    label_visibility="collapsed",
)
finished = tally.total - tally.waiting
if not finished and view != "list":
    frame.note("No group is finished yet; charts appear with the first one.")
elif view == "map":
    the_map(figures, listed, finished)
elif view == "rewards":
    in_depth(figures)
elif view == "tools":
    tools(figures)

total = figures.tally().total if not listed.cell else Figures(ws, listed.which).tally().total
frame.section(words.plural(total, "group"), group_filter.ORDERS[listed.order])
chosen_cell(listed)
first = paging.offset("group_page", total)
rows, _ = ws.store.groups.page(which=listed.which, order=listed.order, limit=paging.PAGE, offset=first)
for row in rows:
    if frame.card(row.id, row_card(row), f"Open group {row.id}"):
        open_group(row.id, listed)
