"""From informative groups to drafts: the evidence extractor always, the three LLM stages where there is a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.advantage import mean_deviation
from core.extraction.draft import Draft, Outcome
from core.library import Library
from core.ports import Progress
from core.rollout import Extraction, Group, Run, Task
from core.workspace.models import Models

if TYPE_CHECKING:
    from core.extraction.consolidate import Superseded
    from core.extraction.contrast import SemanticAdvantage
    from core.extraction.with_model import Learned
    from core.llm import Budget

Pair = tuple[Task, Group]


@dataclass(frozen=True)
class Found:
    """What the extractors made of a run; suggested = drafts + joined + superseded + quarantined."""

    outcome: Outcome
    superseded: tuple[Superseded, ...]
    extraction: Extraction
    semantic: dict[str, str] = field(default_factory=dict)
    """Semantic advantage by rollout id, in words."""

    @property
    def drafts(self) -> tuple[Draft, ...]:
        return self.outcome.drafts


async def extract(
    run: Run, pairs: Sequence[Pair], library: Library, models: Models, budget: Budget, progress: Progress
) -> Found:
    """Draw lessons from the informative groups of a run; without any there is no call at all (DESIGN 3.10).

    Evidence is counted over all groups of the run: a batch of mixed domains would have too few of each. The LLM
    stages work batch by batch, as in the TF-GRPO paper. What both found is reconciled by the rules of DESIGN 2.6.

    Raises:
        ModelUnavailableError, BudgetError, InputError: no call can be made, see `with_model.extract`.
    """
    from core.extraction import from_evidence
    from core.extraction.consolidate import reconcile

    experiences = list(library)
    progress("evidence", 0, 1)
    evidence = from_evidence.propose(pairs, experiences, run_id=run.id, seed=run.config.seed, epoch=0)
    progress("evidence", 1, 1)
    batches = (
        await _ask(run, pairs, library, models, budget, progress) if run.config.extraction_endpoint else []
    )
    drafts = [*evidence.drafts, *(d for b in batches for d in b.drafts)]
    strengths = {group.id: mean_deviation([r.reward for r in group.rollouts]) for _, group in pairs}
    last = reconcile(drafts, experiences, strengths, run_id=run.id)
    outcomes: list[Outcome] = [evidence, *batches, last, Outcome(notes=_silent_domains(pairs, evidence))]
    outcome = Outcome(
        drafts=last.drafts,
        joined=tuple(j for o in outcomes for j in o.joined),
        quarantined=tuple(q for o in outcomes for q in o.quarantined),
        notes=tuple(note for o in outcomes for note in o.notes),
    )
    superseded = (*(s for b in batches for s in b.superseded), *last.superseded)
    suggested = sum(b.operations_in for b in batches)
    suggested += len(evidence.drafts) + len(evidence.joined) + len(evidence.quarantined)
    return Found(outcome, superseded, _counted(outcome, superseded, suggested, batches), _semantic(batches))


def _silent_domains(pairs: Sequence[Pair], evidence: Outcome) -> tuple[str, ...]:
    """Say of each domain without a lesson from evidence how much there was to count."""
    spoken = {getattr(d.operation, "domain", "") for d in evidence.drafts}
    groups = Counter(task.domain for task, _ in pairs)
    return tuple(
        f"{domain}: {n} informative groups were contrasted, and no habit held after the correction for all that were "
        "tried; more groups, or larger ones, find weaker habits."
        for domain, n in sorted(groups.items())
        if domain not in spoken
    )


async def _ask(
    run: Run, pairs: Sequence[Pair], library: Library, models: Models, budget: Budget, progress: Progress
) -> list[Learned]:
    from core.extraction import with_model

    found = []
    async with aclosing(models.chat(run.config.extraction_endpoint or "", budget)) as model:
        for batch in sorted({group.batch for _, group in pairs}):
            own = [(task, group) for task, group in pairs if group.batch == batch]
            found.append(
                await with_model.extract(
                    own, list(library), model, run_id=run.id, seed=run.config.seed, progress=progress
                )
            )
    return found


def _counted(
    outcome: Outcome, superseded: Sequence[Superseded], suggested: int, batches: Sequence[Learned]
) -> Extraction:
    calls: Counter[str] = Counter()
    for batch in batches:
        calls.update(batch.calls)
    return Extraction(
        suggested=suggested,
        joined=len(outcome.joined),
        superseded=len(superseded),
        quarantined=len(outcome.quarantined),
        # How many of them the cache answered depends on what was killed: it is not part of the result.
        calls={stage: n for stage, n in sorted(calls.items()) if stage != "cached"},
        not_contrasted={group: why for batch in batches for group, why in batch.failed.items()},
        notes=outcome.notes,
    )


def _semantic(batches: Sequence[Learned]) -> dict[str, str]:
    return {rollout: _words(s) for batch in batches for rollout, s in batch.advantages.items()}


def _words(advantage: SemanticAdvantage) -> str:
    step = f" (deciding step: {advantage.deciding_step})" if advantage.deciding_step else ""
    return f"{advantage.verdict}: {advantage.why}{step}"
