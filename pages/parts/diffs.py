"""What a proposal would change in the library, by its operation, character for character."""

from __future__ import annotations

import re
from collections.abc import Mapping

import streamlit as st

from core.experience import Delete, Experience, Merge, Modify, Proposal, targets_of, text_of
from core.workspace import Workspace
from core.workspace.reviewing import NearOne, Reviewing
from pages.parts import frame, proposals, safe, words
from pages.parts.safe import Markup, joined, markup

_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
USES_SHOWN = 8
FAR = 0.2
"""What is less alike is shown only where nothing is nearer."""


def draw(proposal: Proposal, ws: Workspace, reading: Reviewing) -> None:
    """The change against the library as it is now; with the reviewer's own edit where there is one."""
    now = reading.queue.experiences(targets_of(proposal.operation))
    match proposal.effective:
        case Delete(experience_id=of):
            _delete(of, now.get(of), proposal, ws)
            return
        case Modify(experience_id=of):
            _modify(of, now, proposal)
        case Merge(experience_ids=ids):
            if said := reading.across(proposal):
                safe.html('<div class="w-warn">Taken together: {said}.</div>', said=said)
            _merge(ids, now, proposal)
        case _:
            frame.note("A new lesson, exactly as it would be stored")
    _stored(proposal)
    if proposal.edited_text is not None:
        _edited(proposal)
    _near(proposal, reading)


def base(proposal: Proposal, now: Mapping[str, Experience], of: str) -> str:
    """The text that a change is read against: as it is now, else as it was when this was proposed."""
    lesson = now.get(of)
    if lesson is not None and lesson.status == "live" and proposal.status != "published":
        return lesson.text
    return proposal.base_texts.get(of, "")


def rebased(proposal: Proposal, reading: Reviewing, why: str) -> None:
    """Say that the base moved, and show how: the text then, and the text now."""
    safe.html('<div class="w-error" role="alert">Stale: {why}.</div>', why=why)
    now = reading.queue.experiences(proposal.base_texts)
    for of, then in proposal.base_texts.items():
        lesson = now.get(of)
        if lesson is None or lesson.status != "live":
            frame.note(f"{of} said, when this was proposed:")
            safe.exact(then, look="diff gone")
        elif lesson.text != then:
            frame.note(f"How {of} changed since this was proposed:")
            safe.html(
                '<div class="w-exact diff" dir="auto">{diff}</div>', diff=safe.word_diff(then, lesson.text)
            )


def mine(proposal: Proposal, before: str, text: str) -> None:
    """The reviewer's own text, while it is written: its words counted, and what it changes."""
    proposals.word_count(text)
    safe.warn_hidden(text)
    against = before or text_of(proposal.operation) or ""
    if text != against:
        frame.note(
            "Your text against the lesson as it is" if before else "Your text against the proposed one"
        )
        safe.html('<div class="w-exact diff" dir="auto">{diff}</div>', diff=safe.word_diff(against, text))


def lost_words(source: str, result: str) -> Markup:
    """A text in which every word that is not in the result is marked as lost."""
    kept = {t.casefold() for t in _TOKENS.findall(result)}
    return joined(
        markup("<del>{t}</del>" if t.strip() and t.casefold() not in kept else "{t}", t=t)
        for t in _TOKENS.findall(source)
    )


def _stored(proposal: Proposal) -> None:
    text = text_of(proposal.effective) or ""
    safe.exact(text, key=f"lesson_{proposal.id}", look="lesson")
    proposals.word_count(text)


def _edited(proposal: Proposal) -> None:
    frame.note("A reviewer edited it; this is what changed of the text that was proposed:")
    diff = safe.word_diff(text_of(proposal.operation) or "", proposal.edited_text or "")
    safe.html('<div class="w-exact diff" dir="auto">{diff}</div>', diff=diff)


def _modify(of: str, now: Mapping[str, Experience], proposal: Proposal) -> None:
    frame.note(f"{of}, word by word: what goes, what comes")
    before = base(proposal, now, of)
    text = text_of(proposal.effective) or ""
    if before == text:
        frame.note(f"Nothing changes: {of} reads so already.")
    safe.html('<div class="w-exact diff" dir="auto">{diff}</div>', diff=safe.word_diff(before, text))
    if lesson := now.get(of):
        _earned(lesson)
    frame.note("The new text, exactly as it would be stored")


def _merge(ids: tuple[str, ...], now: Mapping[str, Experience], proposal: Proposal) -> None:
    frame.note(
        f"{len(ids)} lessons become one; {ids[0]} lives on, the others point to it. "
        "Words that are lost are struck out."
    )
    result = text_of(proposal.effective) or ""
    for of in ids:
        text = base(proposal, now, of)
        safe.html(
            '<div class="w-source"><span class="id">{of}</span><div class="w-exact" dir="auto">{text}</div></div>',
            of=of,
            text=lost_words(text, result),
        )
    live = [lesson for of in ids if (lesson := now.get(of))]
    if live:
        frame.note(
            f"United: {words.plural(sum(e.uses for e in live), 'use')}, "
            f"{words.plural(sum(e.wins for e in live), 'win')}, "
            f"confidence {max(e.confidence for e in live):.2f} (the highest of them)."
        )
    frame.note("The one that stays, exactly as it would be stored")


def _delete(of: str, lesson: Experience | None, proposal: Proposal, ws: Workspace) -> None:
    frame.note(
        f"{of} would be taken out of the library; its history stays, and an undo or a rollback brings it back."
    )
    safe.exact(
        base(proposal, {of: lesson} if lesson else {}, of), key=f"gone_{proposal.id}", look="lesson gone"
    )
    if lesson is None:
        return
    _earned(lesson)
    credits = ws.store.credits.of(of)
    used = [credit for credit, _ in credits if credit.used]
    if not used:
        frame.note("No rollout is recorded that followed it.")
        return
    better = sum(c.better is True for c in used)
    worse = sum(c.better is False for c in used)
    frame.section(
        "Where it was used", f"{better} better, {worse} worse, {len(used) - better - worse} cannot be told"
    )
    for credit in used[-USES_SHOWN:]:
        tone = {True: ("better", "good"), False: ("worse", "bad"), None: ("cannot be told", "quiet")}[
            credit.better
        ]
        content = markup(
            '<div class="top"><span class="id">{source}</span>{chip}<span class="end">{n} followed it, {m} did not'
            "</span></div>",
            source=credit.source,
            chip=frame.chip(*tone),
            n=credit.followers,
            m=credit.others,
        )
        if frame.card(f"use_{credit.source}", content, f"Open group {credit.source}"):
            st.switch_page("pages/learn/group.py", query_params={"id": credit.source})


def _earned(lesson: Experience) -> None:
    safe.html(
        '<div class="w-chips">{chips}</div>',
        chips=joined(
            frame.chip(text, "quiet")
            for text in (
                words.plural(lesson.uses, "use"),
                words.plural(lesson.wins, "win"),
                f"{lesson.uses - lesson.wins} without a win",
                f"confidence {lesson.confidence:.2f}",
                lesson.domain,
            )
        ),
    )


def _near(proposal: Proposal, reading: Reviewing) -> None:
    if proposal.status != "published":
        near(text_of(proposal.effective) or "", targets_of(proposal.operation), reading)


def near(text: str, without: tuple[str, ...], reading: Reviewing) -> None:
    """What the library says already, nearest first; a warning where it may be the same."""
    there = reading.near(text, without=without)
    if not there.found:
        frame.note("Nothing in the library is near to it.")
        return
    by = "shared words" if there.by == "words" else f"stored vectors of {there.by}"
    frame.section("Nearest in the library", f"by {by}")
    for n, one in enumerate(there.found):
        if n and one.similarity < FAR:
            break
        if one.alike:
            safe.html('<div class="w-warn">{said}</div>', said=_warning(one))
        if frame.card(f"near_{one.experience.id}", _near_card(one), f"Open lesson {one.experience.id}"):
            st.switch_page("pages/review/experience.py", query_params={"id": one.experience.id})


def _warning(one: NearOne) -> str:
    if one.opposed:
        return f"{one.experience.id} sounds alike and says the opposite: only one of the two can be right."
    return f"{one.experience.id} may say the same already: edit this one, or reject it as said already."


def _near_card(one: NearOne) -> Markup:
    return markup(
        '<div class="top"><span class="id">{id}</span><span class="w-chip quiet">{domain}</span>'
        '<span class="end">{share}</span></div><div class="w-exact bare near" dir="auto">{text}</div>',
        id=one.experience.id,
        domain=one.experience.domain,
        share=f"{one.similarity:.2f} alike",
        text=one.experience.text[:600],
    )
