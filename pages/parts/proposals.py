"""A proposal on the screen: its exact text or diff, and the counts that stand behind it."""

from __future__ import annotations

import streamlit as st

from core.experience import MAX_WORDS, Delete, Finding, Merge, Modify, Proposal, text_of
from core.workspace import Workspace, count_words
from pages.parts import frame, safe, words
from pages.parts.safe import Markup, joined, markup


def summary(proposal: Proposal) -> Markup:
    """A proposal as a card of a list."""
    text = text_of(proposal.effective)
    return markup(
        '<div class="top"><span class="id">{id}</span>{chip}</div><div class="text clamp">{text}</div>'
        '<div class="foot">{operation}{domain}</div>',
        id=proposal.id,
        chip=words.proposal_chip(proposal),
        text=safe.short(text, 150) if text else "(no text: the lesson would be taken out)",
        operation=words.operation(proposal),
        domain=f" · {domain}" if (domain := getattr(proposal.operation, "domain", None)) else "",
    )


def change(proposal: Proposal, ws: Workspace) -> None:
    """What would change in the library, character for character."""
    operation = proposal.effective
    before = {i: proposal.base_texts.get(i, "") for i in _targets(proposal)}
    match operation:
        case Delete(experience_id=of):
            frame.note(f"{of} would be taken out of the library; its history stays.")
            safe.exact(before.get(of, ""), look="lesson gone")
            return
        case Modify(experience_id=of):
            frame.note(f"{of}, word by word")
            safe.html(
                '<div class="w-exact lesson" dir="auto">{diff}</div>',
                diff=safe.word_diff(before.get(of, ""), operation.text),
            )
            frame.note("The new text, exactly as it would be stored")
        case Merge():
            frame.note(f"{len(before)} lessons would become one; {operation.experience_ids[0]} lives on.")
            for of, text in before.items():
                frame.note(of)
                safe.exact(text)
            frame.note("The new text, exactly as it would be stored")
        case _:
            frame.note("A new lesson, exactly as it would be stored")
    safe.exact(operation.text, key=f"lesson_{proposal.id}", look="lesson")
    word_count(operation.text)
    if proposal.edited_text is not None:
        frame.note("Edited by the reviewer; it was proposed as:")
        safe.exact(text_of(proposal.operation) or "", key=f"as_proposed_{proposal.id}")


def word_count(text: str) -> None:
    """Words against the limit of the library."""
    n = count_words(text)
    safe.html(
        '<div class="w-words {look}">{n} of at most {most} words{over}</div>',
        look="over" if n > MAX_WORDS else "",
        n=n,
        most=MAX_WORDS,
        over=": shorten it before it can be approved" if n > MAX_WORDS else "",
    )


def evidence(proposal: Proposal) -> None:
    """The counts: winners and losers with each feature, odds ratio and corrected p."""
    found = proposal.evidence
    if found.sentence and found.sentence not in proposal.rationale:
        safe.html('<p class="w-note">{sentence}</p>', sentence=found.sentence)
    if not found.findings:
        frame.note("Nothing was counted for this proposal: it rests on its rationale alone.")
    else:
        safe.draw(joined(_finding(f) for f in found.findings[:8]))
        tried = (
            f"corrected over {found.features_tried:,} features tried"
            if found.features_tried
            else "corrected p"
        )
        frame.note(f"Winners have an advantage above 0, losers below. p is {tried}.")
    frame.facts(
        [
            ("Drawn by", words.EXTRACTOR[proposal.extractor]),
            ("Seen in", words.plural(len(found.group_ids), "group")),
            ("Learned on", proposal.learned_on or "not recorded"),
            ("Starts with confidence", f"{proposal.confidence:.2f}"),
        ]
    )


def examples(proposal: Proposal) -> None:
    """Ways to the rollouts and groups that a proposal rests on."""
    found = proposal.evidence
    with st.container(horizontal=True):
        for rollout_id in found.rollout_ids[:6]:
            if st.button(safe.label(rollout_id), key=f"example_{rollout_id}", icon=":material/article:"):
                st.switch_page("pages/learn/rollout.py", query_params={"id": rollout_id})
        if not found.rollout_ids:
            for group_id in found.group_ids[:6]:
                if st.button(safe.label(group_id), key=f"example_{group_id}", icon=":material/scatter_plot:"):
                    st.switch_page("pages/learn/group.py", query_params={"id": group_id})


def _finding(finding: Finding) -> Markup:
    return markup(
        '<div class="w-finding"><p>{label}'
        '</p>{winners}{losers}<span class="w-note">odds ratio {ratio}, p {p}</span></div>',
        label=finding.label,
        winners=_share("winners", finding.winners_with, finding.winners, "w-grain-fill"),
        losers=_share("losers", finding.losers_with, finding.losers, "w-chaff-fill"),
        ratio=f"{finding.odds_ratio:.1f}",
        p="< 0.001" if finding.p_corrected < 0.001 else f"= {finding.p_corrected:.3f}",
    )


def _share(name: str, some: int, of: int, look: str) -> Markup:
    return markup(
        '<div class="w-share"><span>{name}</span><span class="track">'
        '<i class="{look}" style="width:{share}%"></i></span>'
        "<b>{some} of {of}</b></div>",
        name=name,
        look=look,
        share=f"{100 * some / of if of else 0:.1f}",
        some=some,
        of=of,
    )


def _targets(proposal: Proposal) -> tuple[str, ...]:
    match proposal.operation:
        case Merge(experience_ids=ids):
            return ids
        case Modify(experience_id=of) | Delete(experience_id=of):
            return (of,)
        case _:
            return ()
