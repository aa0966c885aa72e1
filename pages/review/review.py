"""Decide on proposals: the exact text, what was counted for it, and five keys."""

import streamlit as st

from core.workspace import stale
from pages.parts import deciding, decision_bar, frame, paging, proposals, safe, session, words
from pages.parts.guard import guard, red_line
from pages.parts.safe import markup

QUEUES = {
    "Waiting": ("proposed", "deferred"),
    "Staged": ("approved",),
    "Rejected": ("rejected",),
    "Set aside": ("superseded", "quarantined", "stale"),
    "Published": ("published",),
}
RAIL = 12

ws = session.workspace()
counts = ws.store.proposals.counts()
frame.page("Review", "You see the exact text that would be stored and shipped, and what was counted for it.")
if not counts:
    frame.empty(
        "Nothing to review yet",
        "Proposals come from runs: what the better rollouts of a group did differently, said in at most 32 words.",
        "Start a run",
        "pages/learn/new_run.py",
    )
    st.stop()


def named(queue: str) -> str:
    return f"{queue} {sum(counts.get(s, 0) for s in QUEUES[queue])}"


with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    queue = (
        st.segmented_control(
            "Queue",
            list(QUEUES),
            default="Waiting",
            required=True,
            format_func=named,
            key="review_queue",
            label_visibility="collapsed",
            wrap=True,
            bind="query-params",
        )
        or "Waiting"
    )
    if counts.get("approved") and st.button(
        f"Publish {counts['approved']:d} staged", key="to_publish", icon=":material/publish:"
    ):
        st.switch_page("pages/review/publish.py")

total = ws.store.proposals.page(QUEUES[queue], limit=0)[1]
asked = session.asked()
last = deciding.decided()[-1] if deciding.decided() else ""
if not total and not asked:
    staged = counts.get("approved", 0)
    if queue == "Waiting":
        frame.empty(
            "The queue is clear",
            f"{words.plural(staged, 'proposal')} staged: publishing takes them into the library together."
            if staged
            else "Everything that was proposed is decided. Another run may propose more.",
            f"Publish {staged} staged" if staged else "Start a run",
            "pages/review/publish.py" if staged else "pages/learn/new_run.py",
        )
    else:
        frame.note("Nothing here.")
    if last:
        st.button(
            safe.label(f"Undo the decision on {last}"),
            key="undo",
            shortcut="u",
            on_click=deciding.undo,
            args=(ws, last),
        )
    st.stop()

with st.container(key="review_desk"):
    rail, middle, side = st.columns([6, 11, 7], gap="medium")
with rail:
    first = paging.offset("review_page", total, RAIL)
    shown, _ = ws.store.proposals.page(QUEUES[queue], limit=RAIL, offset=first)
ids = [p.id for p in shown]
with guard(stop=True):
    item = ws.store.proposals.get(asked) if asked else shown[0]
at = ids.index(item.id) if item.id in ids else -1
following = ids[at + 1] if 0 <= at < len(ids) - 1 else next((i for i in ids if i != item.id), "")

with rail:
    for proposal in shown:
        with st.container(key=f"rail_{proposal.id}"):
            if frame.card(
                proposal.id,
                proposals.summary(proposal),
                f"Show {proposal.id}",
                current=proposal.id == item.id,
            ):
                deciding.show(proposal.id)
                st.rerun()


with middle:
    kind = getattr(item.operation, "kind", None)
    safe.html(
        '<div class="w-card" style="border:0;background:none;padding:0"><div class="top">'
        '<span class="id">{id}</span>{chip}'
        "<b>{operation}</b>{kind}</div></div>",
        id=item.id,
        chip=words.proposal_chip(item),
        operation=words.operation(item),
        kind=frame.chip(words.KIND[kind], "quiet") if kind else markup(""),
    )
    if item.status in ("proposed", "deferred") and (moved := stale(item, ws.store.versions.library())):
        red_line(f"Stale: {moved}. Reject it, or edit it against the new text.")
    proposals.change(item, ws)
    decision_bar.draw(ws, item, following, last)
    if item.reason:
        frame.note(f"{words.PROPOSAL[item.status][0].capitalize()}: {item.reason}")
    if item.decided_by:
        frame.note(f"Last decision by {item.decided_by}, {item.decided_at or ''}; revision {item.revision}.")
    with st.container(horizontal=True):
        st.button(
            "Previous",
            key="previous",
            shortcut="k",
            type="tertiary",
            disabled=at < 1,
            on_click=deciding.show,
            args=(ids[at - 1] if at > 0 else "",),
        )
        st.button(
            "Next",
            key="next",
            shortcut="j",
            type="tertiary",
            disabled=not (0 <= at < len(ids) - 1),
            on_click=deciding.show,
            args=(following,),
        )
with side:
    frame.section("Evidence")
    proposals.evidence(item)
    if item.evidence.rollout_ids or item.evidence.group_ids:
        frame.section("Examples")
        proposals.examples(item)
    if item.rationale:
        frame.section("Rationale")
        safe.exact(item.rationale, key="rationale", look="prose")
    if item.raw_reply:
        with st.expander("The model's raw reply"):
            safe.exact(item.raw_reply, key="raw_reply")

if queue == "Set aside" and (kept := ws.store.proposals.quarantined()):
    frame.section(
        "Quarantine", "suggestions that could not become a proposal, with the reply that they came from"
    )
    for n, held in enumerate(kept[:20]):
        with st.expander(safe.label(f"{held.run_id or ''}: {held.reason}", 120)):
            safe.exact(held.raw, key=f"quarantined_{n}")
