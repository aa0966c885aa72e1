"""One group: the same task, several rollouts, and what set them apart."""

import streamlit as st

from core.rollout import Group, Rollout
from core.workspace.beside import lay
from core.workspace.reweighing import rollout_parts, slim, sources
from core.workspace.teaching import why_not
from pages.parts import (
    charts_group,
    frame,
    group_filter,
    lesson_form,
    proposals,
    reasons,
    safe,
    session,
    side_by_side,
    weights,
    words,
)
from pages.parts.guard import guard
from pages.parts.safe import Markup, joined, markup

SHOWN = 400
COLUMNS = (2, 3, 4)

ws = session.workspace()
if not (group_id := session.asked()):
    frame.back("Groups", "pages/learn/groups.py")
    frame.page("Group", "The rollouts of one task beside each other.")
    frame.empty("No group chosen", "Choose one from the list.", "All groups", "pages/learn/groups.py")
    st.stop()
with guard(stop=True):
    # Back from a rollout comes here with the rollout's id (see `pages.parts.address`).
    group = slim(ws.store, ws.store.figures.group_of(group_id) or group_id)
    reward = ws.store.figures.reward_of(group.run_id).reward
task = ws.store.tasks.find(group.task_id)
not_teaching = why_not(ws.store, group.task_id)
listed = group_filter.from_address()
if not listed.address:
    listed = listed.model_copy(update={"which": listed.which.model_copy(update={"run_id": group.run_id})})


def head() -> None:
    """Where one is, the ways to the groups beside it, and the primary action."""
    there = ws.store.figures.neighbours(group.id, listed.which, listed.order)
    frame.back("Groups", "pages/learn/groups.py", **listed.address)
    frame.page(
        group.id,
        f"{words.plural(len(group.rollouts), 'rollout')} of one task under library version {group.library_version}.",
        crumb="Group",
    )
    chips = [words.group_chip(group), frame.chip(task.domain if task else "", "quiet")]
    chips.append(frame.chip(f"task {group.task_id}", "quiet"))
    if group.epoch or group.batch:
        chips.append(frame.chip(f"epoch {group.epoch + 1}, batch {group.batch + 1}", "quiet"))
    if group.attempt:
        chips.append(frame.chip(f"sampled anew, {group.attempt}", "quiet"))
    safe.html('<div class="w-chips">{chips}</div>', chips=joined(chips))
    with st.container(horizontal=True, vertical_alignment="center"):
        step("Previous", "group_previous", there.before, "k", ":material/arrow_back:")
        step("Next", "group_next", there.after, "j", ":material/arrow_forward:")
        if group.rollouts and not not_teaching:
            st.button(
                "Write a lesson from this group",
                key="group_lesson",
                type="primary",
                icon=":material/edit_note:",
                on_click=lesson_form.toggle,
                args=(group.id,),
            )
        if there.place:
            frame.note(f"{there.place:,} of {there.of:,}, {group_filter.ORDERS[listed.order]}")
    if group.rollouts and not_teaching:
        frame.note(not_teaching)


def step(label: str, key: str, to: str, shortcut: str, icon: str) -> None:
    """A way to another group of the same list."""
    if st.button(safe.label(label), key=key, shortcut=shortcut, disabled=not to, icon=icon):
        st.switch_page("pages/learn/group.py", query_params={"id": to, **listed.inside})


def charts() -> None:
    left, right = st.columns(2, gap="large")
    with left:
        frame.section("Reward", "in the parts that it is made of")
        charts_group.rewards(group, {r.id: rollout_parts(r, group, reward) for r in group.rollouts})
        frame.note(f"The reward is {words.reward(reward, sources(group.rollouts, reward))}.")
    with right:
        frame.section("Advantage", "(reward − mean) / standard deviation; hatched = below the mean")
        charts_group.advantages(group)


def chosen() -> list[Rollout]:
    """The rollouts that stand beside each other: those of the address, else the best and the worst."""
    ranked = charts_group.ranked(group)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        columns = st.segmented_control(
            "Columns", COLUMNS, default=2, required=True, key="group_columns", bind="query-params"
        )
        picked = st.pills(
            "Rollouts; the first is what the others are compared with",
            [r.replicate for r in ranked],
            selection_mode="multi",
            format_func=lambda n: f"#{n}",
            key="group_beside",
            bind="query-params",
        )
    by_number = {r.replicate: r for r in ranked}
    shown = [by_number[n] for n in picked if n in by_number][: columns or 2]
    return shown or extremes(ranked, columns or 2)


def extremes(ranked: list[Rollout], n: int) -> list[Rollout]:
    """The best, the worst, the second best, ...: those that have a reward first."""
    pool = [r for r in ranked if r.reward is not None] or list(ranked)
    found: list[Rollout] = []
    while pool and len(found) < n:
        found.append(pool.pop(0 if len(found) % 2 == 0 else -1))
    return found


def beside() -> None:
    """The chosen rollouts in columns, with the first place at which each parts from the first of them."""
    frame.section("Side by side", "the best and the worst, unless you choose others")
    shown = chosen()
    laid = lay(ws.store, shown)
    side_by_side.partings(laid)
    for column, one in zip(st.columns(len(laid)), laid, strict=True):
        with column:
            side_by_side.column(one, laid[0].rollout, listed.inside)


def card(rollout: Rollout) -> Markup:
    answer = rollout.trajectory.answer
    said = markup(
        '<div class="w-exact bare" dir="auto">{answer}</div>', answer=answer[:SHOWN] or "(empty answer)"
    )
    if rollout.error is not None:
        said = markup('<div class="w-error">{error}</div>', error=safe.short(rollout.error, 300))
    scores = "; ".join(
        f"{name} {words.number(score.value)}"
        + (f" ({safe.short(score.reason, 120)})" if score.value is None else "")
        for name, score in rollout.scores.items()
    )
    steps = rollout.trajectory.steps
    failed = sum(s.success is False for s in steps)
    foot = [scores, f"{words.plural(len(steps), 'step')}, {failed} failed" if steps else ""]
    return markup(
        '<div class="top"><span class="id">#{replicate}</span>{chips}</div>{said}<div class="foot">{foot}</div>',
        replicate=rollout.replicate,
        chips=joined(words.rollout_chips(rollout)),
        said=said,
        foot=" · ".join(part for part in foot if part),
    )


def resting(of: Group) -> None:
    """Proposals that name this group as evidence."""
    ids, total = ws.store.figures.proposals_on(of.id, of.run_id, 5)
    if not ids:
        return
    frame.section(
        "Proposals that rest on this group", f"the strongest of {total}" if total > len(ids) else ""
    )
    for proposal in map(ws.store.proposals.get, ids):
        if frame.card(proposal.id, proposals.summary(proposal), f"Open proposal {proposal.id}"):
            st.switch_page("pages/review/review.py", query_params={"id": proposal.id})


head()
if lesson_form.opened(group.id) and group.rollouts and not not_teaching:
    lesson_form.form(ws, group.id, task.domain if task else "general")
if group.status in ("uninformative", "failed"):
    reasons.card(group)
if task:
    frame.section(
        "Task",
        words.checked(task.verifier.kind)
        + (f"; right answer: {safe.short(task.answer, 80)}" if task.answer else ""),
    )
    safe.exact(task.question, key="group_task", name=f"{task.id}.txt")
if not group.rollouts:
    frame.note("This group waits to be sampled.")
    st.stop()
charts()
with st.expander(
    "Move the weights of the reward", icon=":material/tune:", on_change="rerun", key="group_weights"
) as moving:
    if moving.open:
        weights.panel(ws, group, reward)
beside()
frame.section("All rollouts", "the best first; open one to read it whole")
with st.grid(2, min_column_width=320):
    for rollout in charts_group.ranked(group):
        if frame.card(rollout.id, card(rollout), f"Open rollout {rollout.replicate}"):
            st.switch_page("pages/learn/rollout.py", query_params={"id": rollout.id, **listed.inside})
if group.left_out or group.not_injected:
    with st.expander("What took no part"):
        frame.facts([*group.left_out.items(), *group.not_injected.items()])
resting(group)
