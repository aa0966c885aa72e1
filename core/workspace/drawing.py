"""From what was counted and contrasted to drafts: the evidence extractor always, a model's lessons beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.evidence import Seen
from core.experience import Experience
from core.extraction import from_evidence
from core.extraction.draft import Draft, Outcome
from core.rollout import Extraction, Run

if TYPE_CHECKING:
    from core.extraction.consolidate import Superseded
    from core.extraction.with_model import Learned


@dataclass(frozen=True)
class Found:
    """What the extractors made of groups; suggested = drafts + joined + superseded + quarantined."""

    outcome: Outcome
    superseded: tuple[Superseded, ...]
    extraction: Extraction

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return self.outcome.drafts


def draw(
    run: Run,
    seen: Seen,
    library: Sequence[Experience],
    learned: Sequence[Learned],
    strengths: Mapping[str, float],
    epoch: int,
) -> Found:
    """Reconcile the lessons of the evidence with those of a model; no model is asked here.

    Args:
        run: whose groups they are.
        seen: all that was counted of its informative groups so far: one batch of mixed domains has too few of each.
        library: the version that the rollouts were given.
        learned: what a model made of each batch (DESIGN 2.6); its drafts get the counts that speak of them.
        strengths: mean |r - mean| of each group by its id: decides conflicts.
        epoch: of birth.
    """
    from core.extraction.consolidate import reconcile
    from core.extraction.support import support

    evidence = from_evidence.propose(seen, library, run_id=run.id, seed=run.config.seed, epoch=epoch)

    def backed(draft: Draft) -> Draft:
        return support(draft, seen, library, seed=run.config.seed, epoch=epoch)

    last = reconcile(
        [*evidence.drafts, *(backed(d) for one in learned for d in one.drafts)],
        library,
        strengths,
        run_id=run.id,
    )
    outcomes: list[Outcome] = [evidence, *learned, last, Outcome(notes=_silent_domains(seen, evidence))]
    outcome = Outcome(
        drafts=last.drafts,
        joined=tuple(j for o in outcomes for j in o.joined),
        quarantined=tuple(q for o in outcomes for q in o.quarantined),
        notes=tuple(note for o in outcomes for note in o.notes),
    )
    beaten = [s.model_copy(update={"draft": backed(s.draft)}) for one in learned for s in one.superseded]
    superseded = (*beaten, *last.superseded)
    suggested = sum(one.operations_in for one in learned)
    suggested += len(evidence.drafts) + len(evidence.joined) + len(evidence.quarantined)
    return Found(outcome, superseded, _counted(outcome, superseded, suggested, learned))


def _silent_domains(seen: Seen, evidence: Outcome) -> tuple[str, ...]:
    """Say of each domain without a lesson from evidence how much there was to count."""
    spoken = {getattr(d.operation, "domain", "") for d in evidence.drafts}
    groups = Counter(g.domain for g in seen.counts().groups.values() if g.rows)
    return tuple(
        f"{domain}: no habit held after the correction for all that were tried (informative groups contrasted: {n}); "
        "more groups, or larger ones, find weaker habits."
        for domain, n in sorted(groups.items())
        if domain not in spoken
    )


def _counted(
    outcome: Outcome, superseded: Sequence[Superseded], suggested: int, learned: Sequence[Learned]
) -> Extraction:
    calls: Counter[str] = Counter()
    for one in learned:
        calls.update(one.calls)
    return Extraction(
        suggested=suggested,
        joined=len(outcome.joined),
        superseded=len(superseded),
        quarantined=len(outcome.quarantined),
        # How many of them the cache answered depends on what was killed: it is not part of the result.
        calls={stage: n for stage, n in sorted(calls.items()) if stage != "cached"},
        not_contrasted={group: why for one in learned for group, why in one.failed.items()},
        notes=outcome.notes,
    )
