"""One task tried before a run starts: asked for here, done in a process of its own, shown where it was asked for."""

from __future__ import annotations

import streamlit as st

from core.rollout import Rollout
from core.settings import RunConfig
from core.workspace import Workspace
from core.workspace.rehearsing import Rehearsal, Standing, begin, forget, standing
from pages.parts import charts_group, frame, safe, session, words
from pages.parts.estimate import Outlook
from pages.parts.guard import red_line
from pages.parts.safe import joined, markup

EVERY_S = 1
ANSWERS = 16
"""Rollouts that are shown."""


def now(ws: Workspace, found: Outlook) -> Standing:
    """Where the rehearsal of these settings is."""
    return standing(ws.folder, found.key)


def draw(ws: Workspace, found: Outlook, config: RunConfig) -> None:
    """The button that tries one task, how far it is, and what came of it."""
    at_first = now(ws, found)

    @st.fragment(run_every=EVERY_S if at_first.state == "running" else None)
    def watched() -> None:
        here = now(ws, found)
        if here.state == "running":
            frame.note(f"Trying one task with {found.plan.model} … {here.since_s:.0f} s")
        elif at_first.state == "running":
            session.redraw()  # once: what it took tells how long the run may take

    refusal = session.refusal("reviewer")
    with st.container(horizontal=True, vertical_alignment="center"):
        if at_first.state == "running":
            st.button(
                "Stop",
                key="dry_run_stop",
                icon=":material/stop:",
                on_click=forget,
                args=(ws.folder, found.key),
            )
        elif st.button(
            safe.label("Try one task" if at_first.state == "none" else "Try it again"),
            key="dry_run",
            icon=":material/science:",
            disabled=bool(refusal),
            help=frame.refused(refusal) or "Samples one task as the run would. No run is written down.",
        ):
            session.attempt(lambda: begin(ws.folder, found.key, config, session.role()))
            st.rerun()
        watched()
    if at_first.trouble:
        red_line(at_first.trouble)
    if at_first.found:
        result(at_first.found, config)


def result(found: Rehearsal, config: RunConfig) -> None:
    """The rollouts of the task that was tried."""
    group = found.group
    shown = charts_group.ranked(group)
    safe.html(
        '<div class="w-tried"><div class="w-chips">{chip}<span class="w-note">{task} · {took} s · {sent}</span></div>'
        '<div class="q" dir="auto">{question}</div></div>',
        chip=words.group_chip(group),
        task=safe.short(found.task.id, 60),
        took=f"{found.took_s:.1f}",
        sent=f"{words.plural(found.sent.calls, 'call')} sent, {words.cost(found.sent, free=config.free)}",
        question=safe.short(found.task.question, 400),
    )
    if group.reason:
        frame.note(f"No signal in this one: {group.reason}.")
    rows = joined(map(_row, shown[:ANSWERS]))
    safe.html(
        '<div class="w-scroll"><table class="w-table"><tr><th class="num">Reward</th><th>Answer</th></tr>{rows}</table>'
        "</div>",
        rows=rows,
    )
    with st.expander(
        safe.label(f"The prompt, about {found.prompt_tokens:,} tokens"), icon=":material/notes:"
    ):
        for message in shown[0].trajectory.messages if shown else ():
            if message.role in ("system", "user"):
                frame.note(message.role)
                safe.exact(message.content, key=f"tried_{message.role}", name=f"{message.role}.txt")
    frame.note("The replies are kept: a run with these settings does not pay for them again.")


def _row(rollout: Rollout) -> safe.Markup:
    said = rollout.error or rollout.trajectory.answer
    why = "; ".join(f"{name}: {score.reason}" for name, score in rollout.scores.items() if score.reason)
    more = (
        [f"ended by {rollout.trajectory.finish_reason}"]
        if rollout.trajectory.finish_reason == "length"
        else []
    )
    steps = [words.plural(len(rollout.trajectory.steps), "tool call")] if rollout.trajectory.steps else []
    return markup(
        '<tr><td class="num"><b>{reward}</b></td><td><div dir="auto">{said}</div>'
        '<span class="w-note">{why}</span></td></tr>',
        reward="broke off" if rollout.error else words.number(rollout.reward),
        said=safe.short(said, 500) or "an empty answer",
        why=safe.short(" · ".join(part for part in (why, *more, *steps) if part), 300),
    )
