"""Rollouts of one group in columns: what each did, where it first parted from the first of them, what it answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import streamlit as st

from core.rollout import Message, Rollout, Step
from core.workspace.beside import Divergence, Laid, Reading
from pages.parts import frame, safe, words
from pages.parts.safe import Markup, joined, markup

BEFORE, AFTER = 2, 3
"""Steps that are shown before and after a parting; the others are counted."""
ANSWER, OUTPUT, PARAMETERS = 1_200, 240, 160
"""Characters that are shown; the whole stands on the rollout's own page."""
DIFFED = 1_200
"""Characters up to which answers are compared word by word."""

WHAT = {
    "tool": "another tool",
    "parameters": "other parameters",
    "output": "another outcome",
    "ended": "one of them ends here",
    "role": "another role",
    "content": "another message",
    "answer": "another answer",
}


def partings(laid: Sequence[Laid]) -> None:
    """Say of each rollout where it parts from the first one."""
    first = laid[0].rollout.replicate
    lines = [
        markup("<span><b>#{n}</b> {how}</span>", n=one.rollout.replicate, how=_how(one, first))
        for one in laid[1:]
    ]
    if lines:
        safe.html('<div class="w-parting" role="note">{lines}</div>', lines=joined(lines))


def _how(one: Laid, first: int) -> str:
    if one.parting:
        return f"parts from #{first} {place(one.parting)}"
    if one.same:
        return f"does and answers the same as #{first}"
    return f"was not compared with #{first}: one of the two is too large to be opened here"


def place(one: Divergence) -> str:
    """Where two rollouts part, in words."""
    if one.kind == "answer":
        return "only in the answer"
    return f"at {one.kind} {one.place + 1}: {WHAT[one.what]}"


def column(laid: Laid, first: Rollout, inside: Mapping[str, str]) -> None:
    """One rollout, beside the first of them.

    Args:
        laid: which.
        first: the one that the others are compared with.
        inside: the list that the page's address is inside of.
    """
    rollout, said, own = laid.rollout, laid.reading, laid.rollout.id == first.id
    blocks = [
        markup(
            '<div class="top"><span class="id">#{n}</span>{chips}</div>',
            n=rollout.replicate,
            chips=joined(words.rollout_chips(rollout)),
        ),
        _block("Why, in words", rollout.semantic),
        _block("Summary", rollout.summary),
        _block("Key decision", said.key_decision),
        _block("Root cause", said.root_cause),
        _lessons(rollout, said),
        _block("Course", "Too large to be laid beside others; open it to read it.")
        if laid.heavy
        else _course(rollout, laid.parting),
        _answer(rollout, first, own),
    ]
    safe.html('<div class="w-col {look}">{blocks}</div>', look="first" if own else "", blocks=joined(blocks))
    query = {"id": rollout.id, **inside}
    if laid.parting and laid.parting.kind == "step":
        query["step"] = str(laid.parting.place + 1)
    if st.button(
        safe.label(f"Open #{rollout.replicate}"), key=f"beside_{rollout.id}", icon=":material/open_in_full:"
    ):
        st.switch_page("pages/learn/rollout.py", query_params=query)


def _block(title: str, text: str) -> Markup:
    if not text:
        return Markup()
    return markup('<h4>{title}</h4><p dir="auto">{text}</p>', title=title, text=text[:600])


def _lessons(rollout: Rollout, said: Reading) -> Markup:
    if not rollout.injected:
        return Markup()
    chips = []
    for label, experience_id in list(rollout.injected.items())[:12]:
        how, tone = ("used", "good") if experience_id in said.used else ("", "quiet")
        if experience_id in said.ignored:
            how = "not followed"
        chips.append(frame.chip(f"[{label}] {experience_id}{f' · {how}' if how else ''}", tone))
    if len(rollout.injected) > len(chips):
        chips.append(frame.chip(f"and {len(rollout.injected) - len(chips)} more", "quiet"))
    note = "" if said.known else " (nobody said which were used)"
    return markup(
        '<h4>Lessons given{note}</h4><div class="w-used">{chips}</div>', note=note, chips=joined(chips)
    )


def _course(rollout: Rollout, parting: Divergence | None) -> Markup:
    steps, messages = rollout.trajectory.steps, rollout.trajectory.messages
    if steps or (parting and parting.kind == "step"):
        rows = [_step(n, one, parting) for n, one in enumerate(steps)]
        return _window("Steps", rows, parting, "step")
    if parting and parting.kind == "message" and parting.place < len(messages):
        message = messages[parting.place]
        if message.role == "assistant" and message.content == rollout.trajectory.answer:
            return Markup()  # the answer stands below
        return _window(
            "Messages", [_message(n, m, parting) for n, m in enumerate(messages)], parting, "message"
        )
    return Markup()


def _window(title: str, rows: Sequence[Markup], parting: Divergence | None, kind: str) -> Markup:
    """The rows around a parting; without one, the last ones."""
    at = parting.place if parting and parting.kind == kind else max(0, len(rows) - AFTER)
    first, last = max(0, at - BEFORE), min(len(rows), at + AFTER)
    shown = list(rows[first:last])
    if first:
        same = " the same" if parting else " more"
        shown.insert(0, markup('<li class="skip">{n}{same} before</li>', n=first, same=same))
    if last < len(rows):
        shown.append(markup('<li class="skip">{n} more after</li>', n=len(rows) - last))
    if parting and parting.kind == kind and at >= len(rows):
        shown.append(
            markup(
                '<li class="parts"><span class="what">ends here</span> no {kind} {n}</li>',
                kind=kind,
                n=at + 1,
            )
        )
    return markup('<h4>{title}</h4><ul class="w-course">{rows}</ul>', title=title, rows=joined(shown))


def _step(number: int, step: Step, parting: Divergence | None) -> Markup:
    here = parting is not None and parting.kind == "step" and parting.place == number
    how = {"succeeded": "✓ worked", "failed": "✗ failed"}.get(step.ended, f"? {step.ended}")
    return markup(
        '<li class="{look}">{what}<span class="call">{n}. <b>{tool}</b> {parameters}</span> '
        '<span class="{tone}">{how}</span><span class="out" dir="auto">{out}</span></li>',
        look="parts" if here else "",
        what=_what(parting) if here else Markup(),
        n=number + 1,
        tool=step.tool,
        parameters=safe.short(json.dumps(step.parameters, ensure_ascii=False, default=str), PARAMETERS),
        tone="bad" if step.ended == "failed" else "",
        how=how,
        out=safe.short(step.error or step.output, OUTPUT),
    )


def _message(number: int, message: Message, parting: Divergence) -> Markup:
    here = parting.place == number
    return markup(
        '<li class="{look}">{what}<span class="call">{n}. <b>{role}</b></span><span class="out" dir="auto">{out}</span>'
        "</li>",
        look="parts" if here else "",
        what=_what(parting) if here else Markup(),
        n=number + 1,
        role=message.role,
        out=safe.short(message.content, OUTPUT),
    )


def _what(parting: Divergence | None) -> Markup:
    return markup(
        '<span class="what">first difference: {what}</span><br>', what=WHAT[parting.what] if parting else ""
    )


def _answer(rollout: Rollout, first: Rollout, own: bool) -> Markup:
    if rollout.error is not None:
        return markup(
            '<h4>Broke off</h4><div class="w-error">{error}</div>', error=safe.short(rollout.error, 300)
        )
    answer, against = rollout.trajectory.answer, first.trajectory.answer
    if not answer:
        return markup("<h4>Answer</h4><p>{text}</p>", text="(empty)")
    note = f" (first {ANSWER:,} of {len(answer):,} characters)" if len(answer) > ANSWER else ""
    title, body = f"Answer{note}", markup("{text}", text=answer[:ANSWER])
    if not own and answer == against:
        title = f"Answer, the same as #{first.replicate}{note}"
    elif not own and first.error is None and max(len(answer), len(against)) <= DIFFED:
        title = f"Answer, against #{first.replicate}"
        body = safe.word_diff(against, answer)
    return markup('<h4>{title}</h4><div class="w-exact" dir="auto">{body}</div>', title=title, body=body)
