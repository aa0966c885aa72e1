"""Why groups teach nothing: as a bar that adds up over many groups, and as a card on one of them."""

from __future__ import annotations

import streamlit as st

from core.rollout import UNGRADED, Group, Tally
from pages.parts import frame, safe, tally
from pages.parts.safe import joined, markup

SHOWN = 6
"""Reasons with a line of their own."""

WAYS_ON = (
    (
        "all right",
        "Every rollout got full marks, so there is no better and no worse to learn from.",
        "The task is too easy for this model under this library. Harder tasks, a stricter verifier (a graded one tells "
        "content from form) or a higher temperature bring differences.",
    ),
    (
        "all wrong",
        "Every rollout got nothing, so nothing shows what would have been better.",
        "The task is too hard, or its verifier too strict: look at the answers below. Partial credit (a graded "
        "verifier), larger groups or an easier task bring differences.",
    ),
    (
        "all equal",
        "All rollouts have the same reward, so none is better than the others.",
        "A verifier with more steps between wrong and right, larger groups or a higher temperature bring differences; "
        "for rollouts that were recorded elsewhere, another of their scores may.",
    ),
    (
        "too few scored",
        "Fewer than two rollouts have a reward, so nothing can be compared.",
        "Those without one broke off, could not be verified, or were not graded: see below. What was sampled here can "
        "be retried from the run's page; recorded attempts need their rewards.",
    ),
    (
        "ungraded",
        "These attempts came in without a reward, so nothing tells the good ones from the others.",
        "Import the same files again and say which of their scores is the reward, or add a file of rewards: what is "
        "here is then graded, and nothing is doubled. Or have a verifier score them: {rescore}.",
    ),
    (
        "all failed",
        "Every rollout broke off, so there is no answer to look at.",
        "It is the endpoint or the tools, not the task: an error is never a wrong answer. What was sampled here can be "
        "retried from the run's page.",
    ),
    (
        "no rollout could be scored",
        "There are answers, but the verifier could not tell whether they are right.",
        "Each score below says why. Rescore the run once the verifier works; no rollout needs to be sampled again.",
    ),
)


def bar(found: Tally) -> None:
    """Groups by what became of them, and the reasons of those that taught nothing: both add up."""
    tally.bar(found.model_copy(update={"reasons": {}}))
    if not found.reasons:
        return
    total = sum(found.reasons.values())
    shown = list(found.reasons.items())[:SHOWN]
    rest = total - sum(n for _, n in shown)
    if rest:
        shown.append(("other reasons", rest))
    rows = joined(
        markup(
            '<div class="w-share w-reason"><span>{reason}</span><span class="track"><i class="w-chaff-fill" '
            'style="width:{share}%"></i></span><b>{n}</b></div>',
            reason=reason,
            share=f"{100 * n / total:.2f}",
            n=f"{n:,}",
        )
        for reason, n in shown
    )
    safe.html(
        '<div class="w-reasons"><span class="w-note">Why {total} of them taught nothing</span>{rows}</div>',
        total=f"{total:,}",
        rows=rows,
    )


def card(group: Group) -> None:
    """Why one group has no signal, and what would bring one."""
    reason = group.reason or "unknown"
    _, why, way = next((w for w in WAYS_ON if reason.startswith(w[0])), ("", "", ""))
    safe.html(
        '<div class="w-nosignal"><h3>Why there is no signal: {reason}</h3><p>{why}</p><p>{way}</p>'
        "<p class='w-note'>Nothing was drawn from this group, and no extraction call was spent on it.</p></div>",
        reason=reason,
        why=why,
        way=way.format(rescore=f"winnow rescore {group.run_id} --verifier NAME=KIND"),
    )
    if reason == UNGRADED:
        grade()


def grade() -> None:
    """The way to a reward for attempts that came in without one."""
    if st.button("Import a score or rewards for them", key="grade", icon=":material/upload:"):
        frame.go("pages/learn/import_rollouts.py")
