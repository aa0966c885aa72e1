"""One step, read whole: the call, and under it what came back."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.workspace import Workspace
from core.workspace.reading import Kind, StepView, raw
from pages.parts import frame, gated, safe, words
from pages.parts.outline import RESULTS, took
from pages.parts.safe import Markup, joined, markup
from pages.parts.trace import Trace, go


def draw(trace: Trace) -> None:
    """The present step."""
    number, rollout_id = trace.place, trace.rollout.id
    key = f"{rollout_id}_{number}"
    spaced = bool(st.session_state.get("trace_spaced", True))
    step = trace.reading.step(number, head=gated.head(key), spaced=spaced)
    _head(step)
    _course(step)
    if step.error.size:
        frame.note("Error")
        gated.show(step.error, f"{key}_error", find=trace.find, look="w-failed")
    _hits(trace, number)
    frame.section("Call", "no parameters" if not step.parameters.size else "")
    if step.parameters.size:
        gated.show(step.parameters, f"{key}_parameters", find=trace.find, look="w-call")
    size = trace.reading.lines[number - 1].characters
    with st.container(horizontal=True, vertical_alignment="bottom", key="trace_output_head"):
        frame.section("Result", f"{size:,} characters" if size else "")
        if step.is_json:
            st.toggle(
                "Space out JSON",
                value=True,
                key="trace_spaced",
                persist_state="session",
                help="Only white space between its parts is added; off shows the text as it is stored.",
            )
    gated.show(
        step.output,
        key,
        whole=partial(file_of, trace.ws, rollout_id, "step", number),
        name=f"{rollout_id}-step-{number}.txt",
        find=trace.find,
        look="w-result",
    )


def file_of(ws: Workspace, rollout_id: str, kind: Kind, number: int) -> bytes:
    """The file of a whole text; made when it is downloaded."""
    return raw(ws.store, rollout_id, kind, number).encode("utf-8", "replace")


def _head(step: StepView) -> None:
    line = step.line
    mark, how, tone = RESULTS[line.result]
    chips = [frame.chip(f"{mark} {how}", tone)]
    if any(c.isalpha() for c in step.signature):  # of an error of symbols and numbers nothing is left
        chips.append(frame.chip(safe.short(step.signature, 60), "quiet"))
    if line.retries:
        chips.append(frame.chip(f"the tool tried {words.plural(line.retries, 'time')} more", "quiet"))
    safe.html(
        '<div class="w-item w-at"><span class="n">{n}</span><b class="tool" dir="auto">{tool}</b>{chips}'
        '<span class="end">{took}</span></div>',
        n=line.number,
        tool=line.tool,
        chips=joined(chips),
        took=took(line.duration_s) or "duration not recorded",
    )


def _course(step: StepView) -> None:
    """What a failed step was followed by, or what this one made good."""
    line = step.line
    lines: list[Markup] = []
    if line.after:
        lines.append(markup("<span>After it failed, the agent {what}.</span>", what=_did(line.after)))
    if line.recovers:
        lines.append(
            markup("<span>It makes good the failure of step <b>{n}</b>.</span>", n=line.recovers),
        )
    if not lines:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="trace_course"):
        safe.html('<div class="w-parting" role="note">{lines}</div>', lines=joined(lines))
        if line.recovers:
            st.button(
                f"To step {line.recovers:d}",
                key="trace_to_failure",
                type="tertiary",
                on_click=go,
                args=("step", line.recovers),
            )
        elif line.after != "gave up":
            st.button(
                f"To step {line.number + 1:d}",
                key="trace_to_following",
                type="tertiary",
                on_click=go,
                args=("step", line.number + 1),
            )


def _did(words_of_it: str) -> str:
    return "gave up: no call followed" if words_of_it == "gave up" else words_of_it


def _hits(trace: Trace, number: int) -> None:
    """Where in this step is what is looked for: it may lie where nothing is shown."""
    places = [p for p in trace.found.places if p.kind == "step" and p.number == number]
    if not places:
        return
    rows = joined(
        markup(
            '<div class="w-snippet" dir="auto"><span class="where">{part}, {n} found; the first at {at}</span>'
            "{before}<mark>{match}</mark>{after}</div>",
            part=p.part,
            n=f"{p.count:,}",
            at=f"{p.at + 1:,}",
            before=p.before,
            match=p.match,
            after=p.after,
        )
        for p in places
    )
    safe.html("<div>{rows}</div>", rows=rows)
