"""From informative groups to drafts: the evidence extractor always, the three LLM stages where there is a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.extraction.draft import Outcome
from core.library import Library
from core.ports import Progress
from core.rollout import Extraction, Group, Run, Task
from core.workspace.models import Models

if TYPE_CHECKING:
    from core.llm import Budget

Learned = tuple[Task, Group]


@dataclass(frozen=True)
class Found:
    """What the extractors made of a run."""

    outcome: Outcome
    extraction: Extraction
    semantic: dict[str, str] = field(default_factory=dict)
    """Semantic advantage by rollout id."""


async def extract(
    run: Run, learned: Sequence[Learned], library: Library, models: Models, budget: Budget, progress: Progress
) -> Found:
    """Draw lessons from the informative groups of a run; without any there is no call at all (DESIGN 3.10).

    Evidence is counted over all groups of the run: a batch of mixed domains would have too few of each. The LLM
    stages work batch by batch, as in the TF-GRPO paper.
    """
    from core.extraction import from_evidence

    experiences = list(library)
    progress("evidence", 0, 1)
    outcome = from_evidence.propose(learned, experiences, run_id=run.id, seed=run.config.seed, epoch=0)
    progress("evidence", 1, 1)
    return Found(outcome, _counted(outcome))


def _counted(outcome: Outcome) -> Extraction:
    return Extraction(
        suggested=len(outcome.drafts) + len(outcome.joined) + len(outcome.quarantined),
        joined=len(outcome.joined),
        quarantined=len(outcome.quarantined),
    )
