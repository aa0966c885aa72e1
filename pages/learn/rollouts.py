"""Rollouts: search in what they answered, did and failed at."""

import streamlit as st

from core.figures import Looked, RolloutFilter, RolloutHit
from pages.parts import address, frame, safe, session, words
from pages.parts.guard import guard
from pages.parts.safe import Markup, joined, markup

OUTCOMES = {"": "any", "scored": "scored", "unscored": "not to be scored", "error": "broke off"}
FROM = "rollouts_from"

ws = session.workspace()
frame.page("Rollouts", "Find attempts by what they answered, did, or failed at; the newest run comes first.")
runs = ws.store.figures.runs()
if not runs:
    frame.empty(
        "No rollouts yet",
        "A rollout is one attempt at one task; runs make them, and files of recorded ones can be imported.",
        "Go to runs",
        "pages/learn/runs.py",
    )
    st.stop()


def start_over() -> None:
    """Another question starts at the newest rollout."""
    st.query_params[FROM] = "0"


def reward(label: str, key: str) -> float | None:
    """One end of a range of rewards, which may be any numbers; empty = no end."""
    return st.number_input(
        safe.label(label),
        value=address.number(key),
        step=0.05,
        format="%g",
        key=key,
        bind="query-params",
        placeholder="any",
        on_change=start_over,
        width=140,
    )


def asked() -> RolloutFilter:
    """The filter, as widgets that the address holds."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text = st.text_input(
            "Words",
            address.handed("rollouts_text"),
            key="rollouts_text",
            bind="query-params",
            placeholder='words, or a "phrase in quotes"',
            max_chars=500,
            on_change=start_over,
            width=230,
        )
        names = {"": "All runs", **{r.id: r.id for r in runs}}
        run = st.selectbox(
            "Run",
            list(names),
            address.place(list(names.values()), "rollouts_run"),
            key="rollouts_run",
            format_func=names.__getitem__,
            bind="query-params",
            on_change=start_over,
            width=120,
        )
        tools = {"": "any", **{t: t for t in ws.store.rollout_search.tools(run)}}
        tool = st.selectbox(
            "Tool",
            list(tools),
            address.place(list(tools.values()), "rollouts_tool"),
            key="rollouts_tool",
            format_func=tools.__getitem__,
            bind="query-params",
            on_change=start_over,
            width=130,
        )
        outcome = st.selectbox(
            "Outcome",
            list(OUTCOMES),
            address.place(list(OUTCOMES.values()), "rollouts_outcome"),
            key="rollouts_outcome",
            format_func=OUTCOMES.__getitem__,
            bind="query-params",
            on_change=start_over,
            width=140,
        )
        least = reward("Reward at least", "rollouts_from_reward")
        most = reward("at most", "rollouts_to_reward")
        whole = st.toggle(
            "Whole trajectories",
            bool(address.handed("rollouts_whole")),
            key="rollouts_whole",
            bind="query-params",
            on_change=start_over,
            help="Look into messages, parameters and outputs, too. It takes unpacking, so fewer rollouts at once.",
        )
    return RolloutFilter.read(
        {
            "text": text,
            "run_id": run,
            "tool": tool,
            "outcome": outcome,
            "reward_from": least,
            "reward_to": most,
            "whole": whole,
        }
    )


def content(hit: RolloutHit) -> Markup:
    chips = [frame.chip(f"reward {words.number(hit.reward)}", "accent" if (hit.reward or 0) > 0 else "")]
    if hit.error is not None:
        chips.append(frame.chip("broke off", "bad"))
    if hit.steps:
        chips.append(frame.chip(words.plural(hit.steps, "step"), "quiet"))
    said = joined(
        markup(
            '<div class="w-snippet" dir="auto"><span class="where">{where}</span>{before}<mark>{match}</mark>{after}'
            "</div>",
            where=s.where,
            before=s.before,
            match=s.match,
            after=s.after,
        )
        for s in hit.snippets
    ) or markup(
        '<div class="w-snippet" dir="auto">{text}</div>', text=safe.short(hit.error or hit.answer, 240)
    )
    return markup(
        '<div class="top"><span class="id">{group} #{replicate}</span>{chips}<span class="end">{domain}</span></div>'
        '<div class="foot clamp" dir="auto">{question}</div>{said}',
        group=hit.group_id,
        replicate=hit.replicate,
        chips=joined(chips),
        domain=hit.domain,
        question=safe.short(hit.question, 160),
        said=said,
    )


def summary(found: Looked) -> str:
    """What was looked at: a search is bounded, and says so."""
    looked = f"{found.looked:,} of {found.total:,} rollouts looked at"
    if found.start:
        looked = f"rollouts {found.start + 1:,} to {found.stopped_at:,} of {found.total:,} looked at"
    where = "answers (their first 2,000 characters), errors and summaries"
    if which.whole and which.text:
        where = "whole trajectories"
    unread = f"; {found.unread} were too large to be looked into" if found.unread else ""
    count = "1 match" if len(found.hits) == 1 else f"{len(found.hits):,} matches"
    return f"{count}; {looked}: {where}{unread}."


which = asked()
given = session.asked(FROM) or address.handed(FROM)
start = int(given) if given.isdecimal() else 0
with guard(stop=True):
    found = ws.store.rollout_search.find(which, start=start)
frame.note(summary(found))
handed_on = address.inside(
    {
        "rollouts_text": which.text,
        "rollouts_run": which.run_id,
        "rollouts_tool": which.tool,
        "rollouts_outcome": OUTCOMES[which.outcome] if which.outcome else "",
        "rollouts_whole": "yes" if which.whole else "",
        "rollouts_from_reward": "" if which.reward_from is None else f"{which.reward_from:g}",
        "rollouts_to_reward": "" if which.reward_to is None else f"{which.reward_to:g}",
        FROM: session.asked(FROM),
    }
)
for hit in found.hits:
    step = next((s.step for s in hit.snippets if s.step), 0)
    query = {"id": hit.id, **({"step": str(step)} if step else {}), **handed_on}
    if frame.card(hit.id, content(hit), f"Open rollout {hit.replicate} of {hit.group_id}"):
        st.switch_page("pages/learn/rollout.py", query_params=query)
with st.container(horizontal=True):
    if start and st.button("From the newest", key="rollouts_first", icon=":material/first_page:"):
        start_over()
        st.rerun()
    if not found.complete and st.button(
        "Look further back", key="rollouts_further", icon=":material/arrow_forward:"
    ):
        st.query_params[FROM] = str(found.stopped_at)
        st.rerun()
if not found.hits and found.complete:
    frame.note("Nothing fits. Fewer words, another run, or whole trajectories may find it.")
