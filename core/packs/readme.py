"""The README of a pack: what it is and what it says, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.packs.markdown import code_span, fence

if TYPE_CHECKING:
    from core.packs.pack import Pack, PackedExperience


def readme_text(pack: Pack) -> str:
    """Markdown; every foreign text stands in a fence or a code span that it cannot break out of."""
    version = pack.version
    lines = [
        f"# Experience pack {code_span(pack.name)}, version {version.number}",
        "",
        f"{len(pack.experiences)} lessons from groups of checked attempts"
        + (f", published by {code_span(version.author)}." if version.author else "."),
        "",
    ]
    if version.message:
        lines += [fence(version.message), ""]
    lines += [
        "- `prompt.txt` is the text to put into a system prompt, as runs are injected with it.",
        "- `pack.json` holds the lessons with their origin"
        + (" (redacted)." if pack.provenance == "redacted" else "."),
        *_prior(pack),
        "- `sha256sum -c SHA256SUMS` checks the files.",
        "",
        "## Lessons",
        "",
    ]
    for experience in pack.experiences:
        lines += _lesson(experience)
    return "\n".join(lines)


def _prior(pack: Pack) -> list[str]:
    if pack.prior is None:
        return []
    named = pack.prior.tokenizer
    return [
        "- `logit_bias.json` is a token prior, by domain what to send as `logit_bias`: only for the tokenizer of"
        f" {code_span(named.name)} (sha256 of its vocabulary: {named.sha256}), whose ids they are."
    ]


def _lesson(experience: PackedExperience) -> list[str]:
    facts = (
        f"{experience.kind}, domain {code_span(experience.domain)}, confidence {experience.confidence:.2f},"
        f" {experience.wins} wins in {experience.uses} uses,"
        f" learned on {code_span(experience.learned_on)}"
    )
    lines = [f"### {code_span(experience.id)}", "", fence(experience.text), "", facts, ""]
    origin = experience.provenance
    if origin is None:
        return lines
    if origin.evidence:
        lines += ["Evidence:", "", fence(origin.evidence), ""]
    where = "" if origin.version is None else f", in version {origin.version}"
    lines += [
        f"Proposal {code_span(origin.proposal_id)} ({origin.extractor}) from {len(origin.group_ids)} groups and"
        f" {len(origin.rollout_ids)} cited rollouts, decided by {code_span(origin.reviewer or '')}{where}.",
        "",
    ]
    return lines
