"""Support: the counted evidence for and against a lesson that a model drafted (DESIGN 2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from core.evidence import Contrast, Counts, Seen
from core.experience import (
    EVIDENCE_CONFIDENCE,
    GENERAL,
    START_CONFIDENCE,
    Delete,
    Evidence,
    Experience,
    targets_of,
    text_of,
)
from core.extraction.draft import Draft
from core.extraction.sayings import Spoken, spoken

MAX_LINKS = 24
"""Example rollouts linked to a proposal."""


def support(draft: Draft, seen: Seen, library: Sequence[Experience], *, seed: int, epoch: int = 0) -> Draft:
    """The draft with what was counted of all that its text speaks of.

    The counts come from the contrast of the draft's domain over all groups seen so far, corrected over the same
    features as the lessons made from evidence. Where no counted habit matches, the evidence says so, and what its
    own groups earned. It starts with the higher confidence only where the counts are sure and none is sure of the
    opposite. Drafts of the evidence extractor come back as they are.

    Args:
        draft: of a model.
        seen: the groups, counted; its own among them.
        library: live experiences, for the texts of what it changes.
        seed: of the run, as in `from_evidence.propose`.
        epoch: of the run, as in `from_evidence.propose`.
    """
    if draft.extractor == "evidence":
        return draft
    counts = seen.counts()
    texts = {e.id: e.text for e in library}
    targets = [i for i in targets_of(draft.operation) if i in texts]
    contrast = counts.contrast(_domains(draft, counts, library), seed=(abs(seed), epoch))
    own = spoken(text_of(draft.operation) or "", contrast)
    old = {i: spoken(texts[i], contrast) for i in targets}
    if isinstance(draft.operation, Delete):  # it says the opposite of its target
        own = tuple(Spoken(s.finding, not s.agrees) for i in targets for s in old.pop(i))
    findings = {s.finding.feature: s.finding for s in (*own, *(s for found in old.values() for s in found))}
    what = "this deletion" if isinstance(draft.operation, Delete) else "this lesson"
    parts = [_words(own, contrast, what) or _unmatched(draft, counts, what)]
    parts += [
        f"{i}, as it stands: {_lower(words)}"
        for i, found in old.items()
        if (words := _words(found, contrast, i))
    ]
    counted = contrast.evidence(list(findings.values())) if findings else Evidence()
    evidence = counted.model_copy(
        update={
            "group_ids": _once(draft.group_ids, draft.evidence.group_ids, counted.group_ids),
            "rollout_ids": _links(draft, counts, counted),
            "sentence": " ".join(parts),
            "features_tried": contrast.tried,
            "permutations": contrast.permutations,
        }
    )
    sure = any(s.sure and s.agrees for s in own) and not any(s.sure and not s.agrees for s in own)
    return draft.model_copy(
        update={"evidence": evidence, "confidence": EVIDENCE_CONFIDENCE if sure else START_CONFIDENCE}
    )


def _domains(draft: Draft, counts: Counts, library: Sequence[Experience]) -> set[str]:
    """The draft's own domain; of a general or an unknown one, those of its groups, else all."""
    targets = targets_of(draft.operation)
    named = {e.domain for e in library if e.id in targets}
    own = getattr(draft.operation, "domain", None)
    wanted = ({own} if own else named) - {GENERAL}
    if wanted and wanted <= set(counts.domains):
        return wanted
    drawn = {counts.groups[g].domain for g in draft.group_ids if g in counts.groups}
    return drawn & set(counts.domains) or set(counts.domains)


def _words(found: Sequence[Spoken], contrast: Contrast, what: str) -> str:
    """The strongest count for it and the strongest against it, told as what they are; "" without any."""
    for_it = [s for s in found if s.agrees]
    against = [s for s in found if not s.agrees]
    parts = []
    for one in for_it[:1]:
        said = contrast.sentence(one.finding)
        parts.append(f"{said}." if one.sure else f"The counts lean towards {what}, within chance: {said}.")
    for one in against[:1]:
        said = contrast.sentence(one.finding)
        how = f"contradict {what}" if one.sure else f"lean against {what}, within chance"
        parts.append(f"The counts {how}: {said}.")
    if against and against[0].sure:
        parts.reverse()
    return " ".join(parts)


def _unmatched(draft: Draft, counts: Counts, what: str) -> str:
    """What is known of a draft that no count speaks of: what its groups earned, and nothing made up."""
    rows = [row for g in draft.group_ids if g in counts.groups for row in counts.groups[g].rows]
    won, lost = [r.outcome for r in rows if r.sign > 0], [r.outcome for r in rows if r.sign < 0]
    if not won or not lost:
        return f"No counted habit matches {what}, and none of its groups was counted."
    n = sum(bool(counts.groups[g].rows) for g in set(draft.group_ids) & counts.groups.keys())
    return (
        f"No counted habit matches {what}; it was drawn from {n} group{'s' if n > 1 else ''}: mean reward of "
        f"{fmean(won):.2f} for {len(won)} winner{'s' if len(won) > 1 else ''}, of {fmean(lost):.2f} for {len(lost)} "
        f"loser{'s' if len(lost) > 1 else ''}."
    )


def _links(draft: Draft, counts: Counts, counted: Evidence) -> tuple[str, ...]:
    """Example rollouts: counted ones first, those of its own groups before others; then its groups' best and worst."""
    groups = [counts.groups[g] for g in draft.group_ids if g in counts.groups and counts.groups[g].rows]
    own = {row.rollout_id for g in groups for row in g.rows}
    counted_ids = sorted(counted.rollout_ids, key=lambda i: i not in own)
    ends = [max(g.rows, key=lambda row: row.outcome).rollout_id for g in groups]
    ends += [min(g.rows, key=lambda row: row.outcome).rollout_id for g in groups]
    return _once(counted_ids, ends, draft.evidence.rollout_ids)[:MAX_LINKS]


def _once(*ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(i for some in ids for i in some))


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
