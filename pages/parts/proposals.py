"""A proposal on the screen: its exact text or diff, and the counts that stand behind it."""

from __future__ import annotations

from core.experience import MAX_WORDS, Finding, Proposal, text_of
from core.workspace import count_words
from pages.parts import frame, safe, words
from pages.parts.safe import Markup, joined, markup


def summary(proposal: Proposal, notes: Markup | None = None) -> Markup:
    """A proposal as a card of a list; `notes` are further chips."""
    text = text_of(proposal.effective)
    return markup(
        '<div class="top"><span class="id">{id}</span>{chip}{notes}</div>'
        '<div class="text clamp" dir="auto">{text}</div><div class="foot">{operation}{domain}{p}</div>',
        id=proposal.id,
        chip=words.proposal_chip(proposal),
        notes=notes or Markup(),
        text=safe.short(text, 150) if text else "(no text: the lesson would be taken out)",
        operation=words.operation(proposal),
        domain=f" · {domain}" if (domain := getattr(proposal.operation, "domain", None)) else "",
        p=f" · p {chance(min(ps))}" if (ps := [f.p_corrected for f in proposal.evidence.findings]) else "",
    )


def chance(p: float) -> str:
    """`= 0.031`, `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


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


def counts(proposal: Proposal) -> None:
    """Winners and losers with each feature, odds ratio and corrected p."""
    found = proposal.evidence
    if found.sentence and found.sentence not in proposal.rationale:
        safe.html('<p class="w-note">{sentence}</p>', sentence=found.sentence)
    if not found.findings:
        frame.note("Nothing was counted for this proposal: it rests on its rationale alone.")
        return
    safe.draw(joined(_finding(f) for f in found.findings[:8]))
    tried = (
        f"corrected over {found.features_tried:,} features tried" if found.features_tried else "corrected p"
    )
    frame.note(f"Winners have an advantage above 0, losers below. p is {tried}.")


def _finding(finding: Finding) -> Markup:
    return markup(
        '<div class="w-finding"><p>{label}'
        '</p>{winners}{losers}<span class="w-note">odds ratio {ratio}, p {p}</span></div>',
        label=finding.label,
        winners=_share("winners", finding.winners_with, finding.winners, "w-grain-fill"),
        losers=_share("losers", finding.losers_with, finding.losers, "w-chaff-fill"),
        ratio=f"{finding.odds_ratio:.1f}",
        p=chance(finding.p_corrected),
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
