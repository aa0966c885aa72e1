"""One group: the same task, several rollouts, and what set them apart."""

import streamlit as st

from core.rollout import Rollout
from pages.parts import charts, frame, proposals, safe, session, words
from pages.parts.guard import guard
from pages.parts.safe import Markup, joined, markup

SHOWN = 700

ws = session.workspace()
if not (group_id := session.asked()):
    frame.back("Groups", "pages/learn/groups.py")
    frame.page("Group", "The rollouts of one task beside each other.")
    frame.empty("No group chosen", "Choose one from the list.", "All groups", "pages/learn/groups.py")
    st.stop()
with guard(stop=True):
    group = ws.store.groups.get(group_id)
task = ws.store.tasks.find(group.task_id)
frame.back(f"Groups of {group.run_id}", "pages/learn/groups.py", group_run=group.run_id)
frame.page(
    group.id,
    f"{words.plural(len(group.rollouts), 'rollout')} of one task under library version {group.library_version}.",
    crumb="Group",
)
safe.html(
    '<div class="w-chips">{chip}<span class="w-chip quiet">{domain}</span>'
    '<span class="w-chip quiet">task {task}</span></div>',
    chip=words.group_chip(group.status),
    domain=task.domain if task else "",
    task=group.task_id,
)
if group.status in ("uninformative", "failed"):
    safe.html(
        '<div class="w-warn"><b>Why there is no signal:'
        "</b> {reason}. Nothing was drawn from it, and no call was spent.</div>",
        reason=group.reason or "unknown",
    )

if task:
    frame.section(
        "Task",
        f"checked by {task.verifier.kind}"
        + (f"; right answer: {safe.short(task.answer, 80)}" if task.answer else ""),
    )
    safe.exact(task.question, key="group_task", name=f"{task.id}.txt")
if not group.rollouts:
    frame.note("This group waits to be sampled.")
    st.stop()

left, right = st.columns(2, gap="large")
with left:
    frame.section("Reward", "what the verifier gave")
    charts.rewards(group)
with right:
    frame.section("Advantage", "(reward − mean) / standard deviation; hatched = below the mean")
    charts.advantages(group)


def scores(rollout: Rollout) -> str:
    parts = []
    for name, score in rollout.scores.items():
        inside = ", ".join(f"{part} {value:.2f}" for part, value in score.parts.items())
        parts.append(f"{name} {words.number(score.value)}" + (f" ({inside})" if inside else ""))
    return "; ".join(parts)


def content(rollout: Rollout) -> Markup:
    answer = rollout.trajectory.answer
    said = markup(
        '<div class="w-exact bare" dir="auto">{answer}</div>', answer=answer[:SHOWN] or "(empty answer)"
    )
    if rollout.error is not None:
        said = markup('<div class="w-error">{error}</div>', error=safe.short(rollout.error, 300))
    foot = [scores(rollout)]
    if steps := rollout.trajectory.steps:
        failed = sum(s.success is False for s in steps)
        foot.append(f"{words.plural(len(steps), 'step')}, {failed} failed")
    if len(answer) > SHOWN:
        foot.append(f"first {SHOWN} of {len(answer):,} characters")
    return markup(
        '<div class="top"><span class="id">#{replicate}</span>{chips}</div>{said}<div class="foot">{foot}</div>',
        replicate=rollout.replicate,
        chips=joined(words.rollout_chips(rollout)),
        said=said,
        foot=" · ".join(part for part in foot if part),
    )


frame.section("Rollouts", "exact answers, the best first; open one to read it whole")
best_first = sorted(group.rollouts, key=lambda r: (r.reward is None, -(r.reward or 0), r.replicate))
with st.grid(2, min_column_width=320):
    for rollout in best_first:
        if frame.card(rollout.id, content(rollout), f"Open rollout {rollout.replicate}"):
            st.switch_page("pages/learn/rollout.py", query_params={"id": rollout.id})

if semantic := [r for r in best_first if r.semantic]:
    frame.section("Why, in words", "semantic advantages, written by the extraction model")
    for rollout in semantic:
        safe.html(
            '<div class="w-finding"><p><b>#{n}</b> {text}</p></div>',
            n=rollout.replicate,
            text=rollout.semantic,
        )
if group.left_out or group.not_injected:
    with st.expander("What took no part"):
        frame.facts([*group.left_out.items(), *group.not_injected.items()])
drawn, _ = ws.store.proposals.page(run_id=group.run_id, limit=500)
if mine := [p for p in drawn if group.id in p.evidence.group_ids]:
    frame.section(
        "Proposals that rest on this group", f"the strongest of {len(mine)}" if len(mine) > 5 else ""
    )
    for proposal in mine[:5]:
        if frame.card(proposal.id, proposals.summary(proposal), f"Open proposal {proposal.id}"):
            st.switch_page("pages/review/review.py", query_params={"id": proposal.id})
